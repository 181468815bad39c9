"""`make trust`: interrupt commands and runs, fill the disk and flip bits of a small project.

Prints each trial, then a table. A trial is right if each file is as before or as after a command,
and the next run ends with the bytes of an undisturbed one. Options are the seed and the number of
trials of each kind: `python -m tests.trust seed=1 commands=5 flips=20`.
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
from wxb.training.checkpoints import SUMS

TRIALS = {"commands": 66, "engines": 53, "toys": 28, "disks": 20, "flips": 142}
ENGINES = [("dvc", "repro"), ("snakemake", "--cores", "2")]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
SECONDS = 20  # an interrupted run
# Folders that commands may change at any time.
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


class Small(Project):
    """A clone of HEAD at size tiny with two experiments, and letters to mask."""

    def create(self):
        subprocess.run(["git", "clone", "--quiet", ROOT, self.folder], check=True)
        self.reset()
        self.edit(shrink)
        (self.folder / "letters").mkdir()
        for index in range(40):
            letter = self.folder / f"letters/{index}.txt"
            letter.write_text(f"My name is Ann Lee, I live in {index} Rome.\n")
        rows = [f"This is letter {index},{'AB'[index % 2]}\n" for index in range(60)]
        (self.folder / "letters.csv").write_text("text,topic\n" + "".join(rows))

    def files(self):
        """The bytes of all files; the lines of dvc.lock, whose order may differ."""
        result = {}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if path.is_file() and not OWN & {*name.parts} and ".partial" not in str(name):
                content = path.read_bytes()
                result[str(name)] = sorted(content.split(b"\n")) if name.stem == "dvc" else content
        return result

    def give_work(self, command):
        """Prepare something that a command removes or repairs."""
        if command[0] == "readme":
            path = self.folder / "docs/results.md"
            path.write_text(path.read_text().replace("-->\n", "-->\nold\n"))
        elif command[0] == "clean":
            shutil.copytree(self.folder / "models/ner-encoder", self.folder / "models/old")
        elif command[0] == "verify":
            for path in self.folder.glob("models/*/*.safetensors"):
                flip(path, 99)
        elif command[0] == "doctor":
            path = self.folder / "dvc.lock"
            path.write_text(path.read_text()[:-2000])

    def make_stale(self, rng):
        """Remove the outputs and records of two stages; returns the bytes of their outputs."""
        lock = YAML().load(self.folder / "dvc.lock")
        slow = [name for name in lock["stages"] if name.startswith(("train", "pretrain", "lesson"))]
        outs = [
            out
            for name in {rng.choice(slow), rng.choice([*lock["stages"]])}
            for out in lock["stages"].pop(name)["outs"]
        ]
        for out in outs:
            path = self.folder / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        YAML().dump(lock, self.folder / "dvc.lock")
        shutil.rmtree(self.folder / ".dvc/cache/runs")
        return sum(out["size"] for out in outs)

    def interrupt(self, rng, command, seconds):
        """Signal a command or one of its processes at a random moment; wait until all have ended.

        Ctrl-C reaches all processes.
        """
        number, moment = rng.choice(SIGNALS), rng.random() * seconds
        with (self.folder / ".wxb/screen").open("w") as screen:
            process = psutil.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
            )
        time.sleep(moment)
        members = [process]
        with suppress(psutil.NoSuchProcess):
            members += process.children(recursive=True)
            if number == signal.SIGINT or rng.random() < 0.5:
                os.killpg(process.pid, number)
            else:
                rng.choice(members).send_signal(number)
        process.wait(900)
        assert not psutil.wait_procs(members, 900)[1], "processes do not end"
        return f"{' '.join(command)}: {number.name} after {moment:.1f} s"

    def finish(self, rng, expected):
        """Run an engine to its end, which must leave the expected files.

        A stage resumes from its newest checkpoint, unless a bit of it flips.
        """
        found = [path.parent for path in self.folder.glob(f".wxb/checkpoints/*/*/{SUMS}")]
        newest = {path.parent.name.rpartition("-")[0]: path for path in sorted(found, key=_step)}
        damaged = rng.choice([*newest.values()]) if newest and rng.random() < 0.5 else None
        if damaged:
            file = rng.choice(sorted(damaged.iterdir()))
            flip(file, rng.randrange(file.stat().st_size))
        engine = rng.choice(ENGINES)
        if engine[0] == "dvc":
            self.attempt("wxb", "doctor")
        self.run(*engine)
        require_equal(self.files(), expected)
        self.run("wxb", "verify")
        for stage, path in newest.items():
            log = (self.folder / f"logs/{stage}.log").read_text()
            is_resumed = f"resuming from {path.relative_to(self.folder)}" in log
            assert is_resumed != (path == damaged), (path, log)
        return f"; {engine[0]} resumed {len(newest)}, {int(bool(damaged))} of them damaged"


def _step(path):
    return int(path.name.rpartition("-")[2])


def shrink(params):
    """Leave two experiments, and shorten training."""
    params["portable"] = False  # it doubles the time
    params["studies"]["ner"] |= {"experiments": EXPERIMENTS, "question": None}
    for name in {*params["experiments"]} - {*EXPERIMENTS}:
        del params["experiments"][name]
    params["lessons"]["images"].update(widths=[4, 8])


def require_equal(files, *allowed):
    """Require that each file is as in one of several states."""
    names = {*files}.union(*allowed)
    wrong = [n for n in names if files.get(n) not in [state.get(n) for state in allowed]]
    assert not wrong, f"other bytes: {sorted(wrong)[:5]}"


class Trials:
    """A method for each kind of trial, which returns what it did."""

    def __init__(self, folder):
        self.folder, self.after = folder, {}
        self.base = Small(folder / "base")
        self.base.run(*ENGINES[1])
        self.expected = self.base.files()

    def copy(self):
        shutil.rmtree(self.folder / "trial", ignore_errors=True)
        return self.base.copy(self.folder / "trial")

    def commands(self, rng):
        command = ("wxb", *rng.choice(COMMANDS))
        if command not in self.after:  # undisturbed
            project, began = self.copy(), time.monotonic()
            project.give_work(command[1:])
            project.run(*command)
            self.after[command] = project.files(), time.monotonic() - began
        after, seconds = self.after[command]
        project = self.copy()
        project.give_work(command[1:])
        before = project.files()
        what = project.interrupt(rng, command, seconds)
        require_equal(project.files(), before, after)
        if project.files() != after:
            project.run(*command)
            require_equal(project.files(), after)
        return what

    def engines(self, rng):
        project = self.copy()
        project.make_stale(rng)
        what = [
            project.interrupt(rng, rng.choice(ENGINES), SECONDS) for _ in range(rng.choice([1, 2]))
        ]
        return " + ".join(what) + project.finish(rng, self.expected)

    def disks(self, rng):
        """A file system that is full after some bytes."""
        disk, engine = self.folder / "disk", rng.choice(ENGINES)
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", disk], check=True)
        try:
            project = Small(Path(shutil.copytree(self.base.folder, disk / "project")))
            free = round(rng.random() * 3 * project.make_stale(rng))
            size = shutil.disk_usage(disk).used + free
            subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
            code, _ = project.attempt(*engine)
            subprocess.run(["mount", "-o", "remount,size=2g", disk], check=True)
            rest = project.finish(rng, self.expected)
        finally:
            subprocess.run(["umount", disk], check=True)
        return f"{engine[0]}: exit code {code} with {free:,} bytes free{rest}"

    def flips(self, rng):
        """`wxb verify --repair` names a file, and restores it if another has the same bytes."""
        with chdir(self.base.folder):
            stages = YAML(typ="safe").load(Path("dvc.lock"))["stages"].values()
            outs = [Path(out["path"]) for stage in stages for out in stage["outs"]]
            tops = [*outs, Path(".dvc/cache/files")]
            files = [file for top in tops for file in [top, *top.rglob("*")] if file.is_file()]
            path = rng.choice(sorted(file for file in files if file.stat().st_size))
            content = path.read_bytes()
            has_copy = path.suffix == ".dir" or content in (
                file.read_bytes() for file in files if file != path
            )
            flip(path, rng.randrange(len(content)))
            faults = [(fault.path, fault.is_restored) for fault in verify(repair=True)[1]]
            restored = path.read_bytes() if path.exists() else b""
            path.unlink(missing_ok=True)
            path.write_bytes(content)
        assert faults == [(path, has_copy)], faults
        assert (restored == content) == has_copy, path
        return f"{path}{'' if has_copy else ' (no copy)'}"

    def toys(self, rng):
        """Five edits and interrupts of a project of toys, each before a run with an oracle."""
        toy = Toy()
        toy.create()
        try:
            for _ in range(5):
                toy.edit_source(rng.randrange(100), rng.randrange(1, 4))
                toy.interrupt(rng.random(), rng.choice(SIGNALS), 0)
                toy.run("", by_dvc)
        finally:
            toy.teardown()
        return "five interrupts"


def main(seed=0, **numbers):
    """Run trials; returns how many ended wrong."""
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for kind, number in (numbers or TRIALS).items():
            failed[kind] = 0
            for index in range(number):
                try:
                    what = getattr(trials, kind)(random.Random(f"{seed} {kind} {index}"))
                except Exception as error:
                    failed[kind] += 1
                    what = f"WRONG: {error!r}"
                print(f"{kind} {index}: {what}", flush=True)
    print("| trials | number | wrong |\n|---|---:|---:|")
    for kind, number in (numbers or TRIALS).items():
        print(f"| {kind} | {number} | {failed[kind]} |")
    return sum(failed.values())


if __name__ == "__main__":
    options = dict(option.split("=") for option in sys.argv[1:])
    sys.exit(bool(main(**{name: int(value) for name, value in options.items()})))
