"""`make trust`: interrupt commands and runs, fill the disk and flip bits of a project at size tiny.

Prints each trial that ended wrong, then a table. A trial is right if each file is as before or as
after the command, and the next run ends with the bytes of an undisturbed one. The numbers of trials
are options, as in `python -m tests.trust seed=1 commands=5 flips=20`.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, suppress
from pathlib import Path

import psutil
from ruamel.yaml import YAML

from tests.project.test_trust import Project as Toy
from tests.project.test_trust import by_dvc
from tests.project.toy import flip
from tests.project_copy import ROOT, Project
from wxb.project.verify import verify

ENGINES = [("dvc", "repro"), ("snakemake", "--cores", "2")]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
# Folders that no command promises to keep.
OWN = {".git", ".dvc", ".snakemake", ".wxb", "logs", "cost", "__pycache__"}
EXPERIMENTS = ["ner-encoder", "ner-decoder-lora"]
COMMANDS = [
    ("params", "demo"),
    ("new", "corpus", "letters.csv", "--input", "text", "--gold", "topic"),
    ("new", "experiment", "mine", "--study", "ner", "--like", "ner-encoder"),
    ("export", "pii", "--output", "pii.jsonl"),
    ("report",),
    ("readme",),
    ("clean",),
    ("card", "ner-encoder", "--output", "card"),
    ("merge", "ner-decoder-lora", "--output", "merged"),
    ("mask", "-e", "ner-encoder", "letters", "--output", "masked", "--mapping", "names.json"),
    ("verify", "--repair"),
    ("doctor",),
]


def small(params):
    """Leave two experiments, and shorten training."""
    params["portable"] = False  # it doubles the time
    params["studies"]["ner"] |= {"experiments": EXPERIMENTS, "question": None}
    for name in {*params["experiments"]} - {*EXPERIMENTS}:
        del params["experiments"][name]
    params["lessons"]["images"].update(widths=[4, 8])


class Tiny(Project):
    """A clone of HEAD at size tiny, with two experiments."""

    def create(self):
        self.run("git", "clone", "--quiet", ROOT, self.folder)
        self.reset()
        self.edit(small)
        letters = self.folder / "letters"
        letters.mkdir()
        for index in range(40):
            (letters / f"{index}.txt").write_text(f"My name is Ann Lee, I live in {index} Rome.\n")
        rows = [f"This is letter {index},{'AB'[index % 2]}\n" for index in range(60)]
        (self.folder / "letters.csv").write_text("text,topic\n" + "".join(rows))

    def files(self):
        """The bytes of all files, and the records of dvc.lock."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        names = {path: path.relative_to(self.folder) for path in paths}
        return {
            str(name): YAML(typ="safe").load(path) if name.name == "dvc.lock" else path.read_bytes()
            for path, name in names.items()
            if not OWN & {*name.parts} and ".partial" not in name.name
        }

    def damage(self, command):
        """Give a command something to do."""
        if command[0] == "readme":
            path = self.folder / "docs/results.md"
            path.write_text(path.read_text().replace("-->\n", "-->\nnew\n"))
        elif command[0] == "clean":
            shutil.copytree(self.folder / "models/ner-encoder", self.folder / "models/old")
        elif command[0] == "verify":
            for path in sorted((self.folder / "models").glob("*/*.safetensors")):
                flip(path, 99)
        elif command[0] == "doctor":
            path = self.folder / "dvc.lock"
            path.write_text(path.read_text()[:-2000])

    def make_stale(self, rng):
        """Remove the outputs and records of some stages; returns the bytes of their outputs."""
        path, size = self.folder / "dvc.lock", 0
        lock = YAML().load(path)
        slow = [name for name in lock["stages"] if name.startswith(("train", "pretrain", "lesson"))]
        for name in {rng.choice(slow), rng.choice([*lock["stages"]])}:
            for out in lock["stages"].pop(name)["outs"]:
                size += out["size"]
                target = self.folder / out["path"]
                shutil.rmtree(target) if target.is_dir() else target.unlink()
        YAML().dump(lock, path)
        shutil.rmtree(self.folder / ".dvc/cache/runs")
        return size

    def launch(self, command):
        """Start a command as the leader of its own process group; its output goes to a file."""
        with (self.folder / ".wxb/screen").open("w") as screen:
            return psutil.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
            )

    def interrupt(self, rng, command, seconds):
        """Stop a command at a random moment, and wait for all its processes."""
        process, number, share = self.launch(command), rng.choice(SIGNALS), rng.random()
        time.sleep(share * seconds)
        members = [process]
        with suppress(psutil.NoSuchProcess):
            members += process.children(recursive=True)
            # Ctrl-C reaches the group; other signals also reach an engine alone.
            is_alone = number != signal.SIGINT and rng.random() < 0.5
            os.kill(process.pid, number) if is_alone else os.killpg(process.pid, number)
        process.wait(300)
        assert not psutil.wait_procs(members, 60)[1], "a process outlives its engine"
        return f"{' '.join(command)}: {number.name} after {share * seconds:.1f} s"

    def finish(self, rng, expected):
        """Run an engine to its end; the files must be those of a run without trials."""
        engine = rng.choice(ENGINES)
        if engine[0] == "dvc":
            self.attempt("wxb", "doctor")
        self.run(*engine)
        require_equal(self.files(), expected)
        self.run("wxb", "verify")


def require_equal(files, *allowed):
    """Each file must be as in one of several states."""
    names = {*files}.union(*allowed)
    wrong = [n for n in names if files.get(n) not in [state.get(n) for state in allowed]]
    assert not wrong, f"other bytes: {sorted(wrong)[:5]}"


class Trials:
    """One method per kind. Each returns what it did."""

    def __init__(self, folder):
        self.folder = folder
        self.base = Tiny(folder / "base")
        began = time.monotonic()
        self.base.run(*ENGINES[1])
        print(f"built the project in {time.monotonic() - began:.0f} s", flush=True)
        self.expected = self.base.files()
        self.after = {}  # files and seconds of each command without an interrupt

    def copy(self, name="trial"):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.base.copy(self.folder / name)

    def commands(self, rng):
        arguments = rng.choice(COMMANDS)
        command = ("wxb", *arguments)
        if arguments not in self.after:
            project = self.copy()
            project.damage(arguments)
            began = time.monotonic()
            process = project.launch(command)
            assert process.wait() == 0, (project.folder / ".wxb/screen").read_text()
            self.after[arguments] = project.files(), time.monotonic() - began
        after, seconds = self.after[arguments]
        project = self.copy()
        project.damage(arguments)
        before = project.files()
        what = project.interrupt(rng, command, seconds)
        stopped = project.files()
        require_equal(stopped, before, after)
        if stopped != after:
            project.attempt("wxb", "clean")
            project.run(*command)
            require_equal(project.files(), after)
        return what

    def engines(self, rng):
        project = self.copy()
        project.make_stale(rng)
        what = [project.interrupt(rng, rng.choice(ENGINES), 20) for _ in range(rng.choice([1, 2]))]
        project.finish(rng, self.expected)
        return what

    def disks(self, rng):
        """A file system of its own, which is full after some bytes."""
        disk = self.folder / "disk"
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", disk], check=True)
        try:
            shutil.copytree(self.base.folder, disk / "project")
            project = Tiny(disk / "project")
            need = project.make_stale(rng)
            free, engine = round(rng.random() * 2 * need), rng.choice(ENGINES)
            usage = shutil.disk_usage(disk).used
            resize = ["mount", "-o", f"remount,size={usage + free}", disk]
            subprocess.run(resize, check=True)
            code, _ = project.attempt(*engine)
            subprocess.run(["mount", "-o", "remount,size=2g", disk], check=True)
            project.finish(rng, self.expected)
        finally:
            subprocess.run(["umount", disk], check=True)
        return f"{engine[0]}: exit code {code} with {free} bytes free"

    def flips(self, rng):
        """`wxb verify --repair` names a file, and restores it if another has the same bytes."""
        with chdir(self.base.folder):
            stages = YAML(typ="safe").load(Path("dvc.lock"))["stages"].values()
            outs = [Path(out["path"]) for stage in stages for out in stage["outs"]]
            made = [file for out in outs for file in ([*out.rglob("*")] if out.is_dir() else [out])]
            files = [f for f in [*made, *Path(".dvc/cache/files").rglob("*")] if f.is_file()]
            path = rng.choice(files)
            content = path.read_bytes()
            has_copy = path.suffix == ".dir" or any(
                file != path and file.read_bytes() == content for file in files
            )
            index = rng.randrange(len(content))
            flip(path, index)
            faults = [(str(f.path), f.is_restored) for f in verify(repair=True)[1]]
            is_restored = path.exists() and path.read_bytes() == content
            path.write_bytes(content)
            assert faults == [(str(path), has_copy)], faults
            assert is_restored == has_copy, path
            return f"{path}, byte {index}"

    def toys(self, rng):
        """Five edits and interrupts of a project of toys, and a run that an oracle checks."""
        toy = Toy()
        try:
            toy.create()
            for _ in range(5):
                toy.edit_source(rng.randrange(100), rng.randrange(1, 4))
                toy.interrupt(rng.random(), rng.choice(SIGNALS), 0)
            toy.run("", by_dvc)
        finally:
            toy.teardown()
        return "5 interrupts"


def main(seed=0, **numbers):
    """Run trials of each kind; returns how many ended wrong."""
    numbers = numbers or {"commands": 66, "engines": 53, "toys": 28, "disks": 20, "flips": 142}
    table = ["| trials | number | wrong |", "|---|---:|---:|"]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for kind, number in numbers.items():
            wrong, began = 0, time.monotonic()
            for index in range(number):
                try:
                    what = getattr(trials, kind)(random.Random(f"{seed} {kind} {index}"))
                    print(f"{kind} {index}: {what}", flush=True)
                except Exception as error:
                    wrong += 1
                    print(f"{kind} {index} of seed {seed}: WRONG: {error!r}", flush=True)
            table.append(f"| {kind} | {number} | {wrong} |")
            print(f"{kind}: {time.monotonic() - began:.0f} s")
            failed += wrong
    print("\n".join(table))
    return failed


if __name__ == "__main__":
    options = dict(option.split("=") for option in sys.argv[1:])
    sys.exit(bool(main(**{name: int(value) for name, value in options.items()})))
