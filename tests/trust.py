"""`make trust`: interrupt commands and runs, fill the disk and flip bits of a small project.

A trial is right if each file is as before or as after a command, and the next run ends with the
bytes of an undisturbed one. Options are the seed and the number of trials of each kind.
"""

import os
import random
import re
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

from tests.project import test_trust
from tests.project.toy import flip
from tests.project_copy import ROOT, Project, keep_experiments
from wxb.project.verify import verify
from wxb.training.checkpoints import SUMS

ENGINES = [("dvc", "repro"), ("snakemake", "--cores", "2")]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
OWN = {".git", ".dvc", ".snakemake", ".wxb", "logs", "cost", "__pycache__"}
EXPERIMENTS = ["ner-encoder", "ner-decoder-lora"]
COMMANDS = [
    "wxb params demo",
    "wxb new corpus letters.csv --task classification --input text --gold topic",
    "wxb new experiment mine --study ner --like ner-encoder",
    "wxb export pii --output pii.jsonl",
    "wxb clean",
    "wxb card ner-encoder --output card",
    "wxb merge ner-decoder-lora --output merged",
    "wxb mask -e ner-encoder letters.csv --column text --output masked.csv --mapping names.json",
    "wxb verify --repair",
    "wxb doctor",
]


class Small(Project):
    """A clone of HEAD at size tiny with two experiments."""

    def create(self):
        subprocess.run(["git", "clone", "--quiet", ROOT, self.folder], check=True)
        self.reset()
        self.edit(lambda params: keep_experiments(params, EXPERIMENTS))
        (self.folder / "dvc.lock").unlink()  # it has the other experiments
        rows = [f"Ann Lee wrote {index} letters,{'AB'[index % 2]}\n" for index in range(60)]
        (self.folder / "letters.csv").write_text("text,topic\n" + "".join(rows))

    def files(self):
        """The bytes of all files; the paths in dvc.lock, whose order may differ."""
        result = {}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if path.is_file() and not OWN & {*name.parts} and ".partial" not in str(name):
                content = path.read_bytes()
                if name.suffix == ".lock":  # its hashes of costs differ
                    content = sorted(re.findall(rb"path: .*", content))
                result[str(name)] = content
        return result

    def give_work(self, verb):
        """Prepare something that a command removes or repairs."""
        lock = self.folder / "dvc.lock"
        if verb == "clean":
            shutil.copytree(self.folder / "models/ner-encoder", self.folder / "models/old")
        elif verb == "verify":
            for path in self.folder.glob("models/*/*.safetensors"):
                flip(path, 99)
        elif verb == "doctor":
            lock.write_text(lock.read_text()[:-2000])

    def make_stale(self, rng):
        """Remove the outputs and the record of a stage that trains; returns their bytes."""
        lock = YAML().load(self.folder / "dvc.lock")
        slow = [name for name in lock["stages"] if name.startswith(("train", "pretrain", "lesson"))]
        outs = lock["stages"].pop(rng.choice(slow))["outs"]
        for path in (self.folder / out["path"] for out in outs):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        YAML().dump(lock, self.folder / "dvc.lock")
        shutil.rmtree(self.folder / ".dvc/cache/runs")
        return sum(out["size"] for out in outs)

    def interrupt(self, rng, command, seconds):
        """Signal a command, or for other signals than Ctrl-C one of its processes; wait for all."""
        number, moment = rng.choice(SIGNALS), rng.random() * seconds
        with (self.folder / ".wxb/screen").open("w") as screen:
            streams = {"stdout": screen, "stderr": screen, "start_new_session": True}
            process = psutil.Popen(command, cwd=self.folder, env=self.environment, **streams)
        time.sleep(moment)
        members = [process]
        with suppress(psutil.NoSuchProcess):
            members += process.children(recursive=True)
            if number == signal.SIGINT or rng.random() < 0.5:
                os.killpg(process.pid, number)
            else:
                rng.choice(members).send_signal(number)
        assert not psutil.wait_procs(members, 900)[1], "processes do not end"
        return f"{' '.join(command)}: {number.name} after {moment:.1f} s"

    def finish(self, rng, expected):
        """End a run with the expected files; stages resume, unless a bit of a checkpoint flips."""
        sealed = sorted(self.folder.glob(f".wxb/checkpoints/*/*/{SUMS}"), key=os.path.getmtime)
        newest = {path.parents[1].name.rpartition("-")[0]: path.parent for path in sealed}
        damaged = rng.choice([None, *newest.values()])
        if damaged:
            file = rng.choice(sorted(damaged.iterdir()))
            flip(file, rng.randrange(file.stat().st_size))
        engine = rng.choice(ENGINES)
        self.attempt("wxb", "doctor")  # before a plain `dvc`
        self.run(*engine)
        require_equal(self.files(), expected)
        self.run("wxb", "verify")
        for stage, path in newest.items():
            log = (self.folder / f"logs/{stage}.log").read_text()
            assert (f"/{path.name}\n" in log) != (path == damaged), log
        return f"; {engine[0]} resumed {len(newest)}, {int(bool(damaged))} of them damaged"


def require_equal(files, *allowed):
    names = {*files}.union(*allowed)
    wrong = [n for n in names if files.get(n) not in [state.get(n) for state in allowed]]
    assert not wrong, f"other bytes: {sorted(wrong)[:5]}"


class Trials:
    def __init__(self, folder):
        self.folder, self.after = folder, {}
        self.base = Small(folder / "base")
        began = time.monotonic()
        self.base.run(*ENGINES[1])
        self.seconds = (time.monotonic() - began) / 2  # of a run of some stages
        self.expected = self.base.files()

    def copy(self, verb=""):
        shutil.rmtree(self.folder / "trial", ignore_errors=True)
        project = self.base.copy(self.folder / "trial")
        project.give_work(verb)
        return project

    def commands(self, rng):
        command = tuple(rng.choice(COMMANDS).split())
        if command not in self.after:  # undisturbed
            project, began = self.copy(command[1]), time.monotonic()
            project.run(*command)
            self.after[command] = project.files(), time.monotonic() - began
        after, seconds = self.after[command]
        project = self.copy(command[1])
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
            project.interrupt(rng, rng.choice(ENGINES), self.seconds)
            for _ in range(rng.choice([1, 2]))
        ]
        return " + ".join(what) + project.finish(rng, self.expected)

    def disks(self, rng):
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
            tops = [Path(out["path"]) for stage in stages for out in stage["outs"]]
            tops.append(Path(".dvc/cache/files"))
            files = {file for top in tops for file in [top, *top.rglob("*")] if file.is_file()}
            path = rng.choice(sorted(file for file in files if file.stat().st_size))
            content = path.read_bytes()
            has_copy = path.suffix == ".dir" or content in map(Path.read_bytes, files - {path})
            flip(path, rng.randrange(len(content)))
            faults = [(fault.path, fault.is_restored) for fault in verify(repair=True)[1]]
            is_restored = path.exists() and path.read_bytes() == content
            path.unlink(missing_ok=True)
            path.write_bytes(content)
        assert faults == [(path, has_copy)], faults
        assert is_restored == has_copy, path
        return f"{path}{'' if has_copy else ' (no copy)'}"

    def toys(self, rng):
        toy = test_trust.Project()
        toy.create()
        for _ in range(5):
            toy.edit_source(rng.randrange(100), rng.randrange(1, 4))
            toy.interrupt(rng.random(), rng.choice(SIGNALS))
            toy.run("", test_trust.by_dvc)
        toy.teardown()
        return "five interrupts"


def main(seed=0, **numbers):
    """Run trials, and print each and a table; returns how many ended wrong."""
    failed = dict.fromkeys(numbers, 0)
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for kind, index in ((name, i) for name, number in numbers.items() for i in range(number)):
            try:
                what = getattr(trials, kind)(random.Random(f"{seed} {kind} {index}"))
            except Exception as error:
                failed[kind] += 1
                what = f"WRONG: {error!r}"
            print(f"{kind} {index}: {what}", flush=True)
    print("| trials | number | wrong |\n|---|---:|---:|")
    for kind, wrong in failed.items():
        print(f"| {kind} | {numbers[kind]} | {wrong} |")
    return sum(failed.values())


if __name__ == "__main__":
    options = dict(option.split("=") for option in sys.argv[1:])
    sys.exit(bool(main(**{name: int(value) for name, value in options.items()})))
