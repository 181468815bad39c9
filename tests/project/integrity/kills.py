"""Stop an engine at random moments of a toy project, and count how often the next run goes on.

`python -m tests.project.integrity.kills dvc --kills 60`; the other engine is `snakemake`.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.project import toy_dag

BIN = Path(sys.executable).parent
COMMANDS = {"dvc": ["dvc", "repro"], "snakemake": ["snakemake", "--cores", "2"]}
# What `wxb doctor` does, without its other checks.
DOCTOR = "from wxb.project.engines import repaired\nwith repaired(print): pass"


class Toy:
    """A toy project, an engine, and what the runs after kills came to."""

    def __init__(self, folder, engine, counts, seed=0):
        self.folder = toy_dag.create(folder)
        self.command = COMMANDS[engine]
        self.random = random.Random(seed)
        self.counts = counts
        self.rate = 1
        self.seconds = 0.0  # of the last run that was not stopped
        assert self.finish()
        assert self.finish()
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run([*git, "add", "-A"], cwd=self.folder, check=True, capture_output=True)
        subprocess.run([*git, "commit", "-qm", "1"], cwd=self.folder, check=True)

    def start(self, *command):
        return subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "EXPECTED_PREFIX": sys.prefix,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self):
        """Start the engine, half the times with an edit, and stop it at a random moment.

        Returns whether it was still running.
        """
        if self.random.random() < 0.5:
            self.edit()
        process = self.start(*self.command)
        number = self.random.choice([signal.SIGINT, signal.SIGKILL])
        whole = self.random.random() < 0.7  # else only the engine
        time.sleep(self.random.uniform(0.1, 0.9) * self.seconds)
        is_stopped = process.poll() is None
        if is_stopped:
            self.counts["stopped"] += 1
            members = [process.pid]
            members += [p.pid for p in psutil.Process(process.pid).children(recursive=True)]
            for pid in members if whole else members[:1]:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        process.communicate()  # also its children, which have the same output
        return is_stopped

    def edit(self):
        self.rate += 1
        path = self.folder / "params.yaml"
        path.write_text(re.sub(r"(study: s, rate: )\d+", rf"\g<1>{self.rate}", path.read_text()))

    def finish(self):
        """Run the engine to its end; returns whether it succeeded with the right results."""
        started = time.monotonic()
        process = self.start(*self.command)
        output = process.communicate()[0]
        self.seconds = time.monotonic() - started
        if process.returncode:
            print(output, flush=True)
            return False
        n = f'{{"n": {2 * self.rate}}}'
        expected = {"reports/metrics/s/x.json": n, "reports/s.html": f"x,{n}\n"}
        results = {name: (self.folder / name).read_text() for name in expected}
        self.counts["wrong"] += results != expected
        assert results == expected
        return True

    def go_on(self):
        """Run again; under DVC alone, after `wxb doctor` if need be."""
        if self.finish():
            self.counts["went on"] += 1
        elif self.command[0] == "dvc":
            doctor = self.start("python", "-c", DOCTOR)
            print(doctor.communicate()[0], flush=True)
            if self.finish():
                self.counts["went on after `wxb doctor`"] += 1
            else:
                self.counts["refused"] += 1
        else:
            self.counts["refused"] += 1


def run(folder, engine, kills, counts, seed=0, deadline=float("inf")):
    """Kill an engine until `counts` has so many kills, or until the deadline."""
    toy = Toy(folder, engine, counts, seed)
    while counts["stopped"] < kills and time.monotonic() < deadline:
        if not toy.kill():
            continue
        toy.go_on()
        print(engine, dict(counts), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=COMMANDS)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DVC_SITE_CACHE_DIR"] = f"{folder}/dvc"
        run(Path(folder, "toy"), arguments.engine, arguments.kills, Counter(), arguments.seed)


if __name__ == "__main__":
    main()
