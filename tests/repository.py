"""A git repository in the working folder."""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple


class Files(NamedTuple):
    """A tree of JSON files in memory, as git has them."""

    name: str
    contents: dict

    def read(self, path):
        content = self.contents.get(path)
        return None if content is None else json.dumps(content).encode()

    def files(self, folder):
        return sorted(path for path in self.contents if path.startswith(f"{folder}/"))


def git(*arguments):
    """Run a git command that must succeed; returns its output."""
    name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *name, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit():
    """Commit all files; returns the commit's hash."""
    git("add", "--all")
    git("commit", "-q", "--allow-empty", "-m", "a commit")
    return git("rev-parse", "HEAD")


def write(path, content):
    """Write text, bytes, or other content as JSON; creates the folder, returns the path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    Path(path).write_bytes(text.encode() if isinstance(text, str) else text)
    return Path(path)


def write_files(files):
    """Write files by path."""
    for path, content in files.items():
        write(path, content)


def edit(path, old, new):
    """Replace the first occurrence of a text in a file, which must have it."""
    text = Path(path).read_text(encoding="utf-8")
    assert old in text
    write(path, text.replace(old, new, 1))
