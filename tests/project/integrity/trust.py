"""Random steps, kills and inputs for long; writes the counts as a table: `make trust`.

`python -m tests.project.integrity.trust FILE --steps 2000 --kills 500`. It exits with 1 if anything
failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.project.integrity import kills
from tests.project.integrity.machine import Project
from wxb.project.reproduction import benchmarks

STEPS = 60  # of one project
LAWS = ["tests/tasks/test_laws.py", "tests/test_fuzz.py"]


def repeat(function, counts, key, number, deadline):
    """Call a function until `counts[key]` is `number`, or until the deadline.

    Exceptions are printed and counted as `failures`. A call that fails before it counts is the
    last.
    """
    before = -1
    while before < counts[key] < number and time.monotonic() < deadline:
        before = counts[key]
        try:
            function()
        except Exception:
            traceback.print_exc()
            counts["failures"] += 1
        print(dict(counts), flush=True)


def run_projects(number, **options):
    """Run a number of projects; in the first, hypothesis takes the simplest choices."""
    run_state_machine_as_test(
        Project,
        settings=settings(
            max_examples=number,
            stateful_step_count=STEPS,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=[*HealthCheck],
            **options,
        ),
    )


def kill(engine, number, seconds):
    """Kill an engine of toy projects; returns the counts of `kills`."""
    counts, deadline = Counter(), time.monotonic() + seconds

    def run():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DVC_SITE_CACHE_DIR"] = f"{folder}/dvc"
            # Another seed after a failure.
            seed = counts["stopped"]
            kills.run(Path(folder, "toy"), engine, number, counts, seed, deadline)

    repeat(run, counts, "stopped", number, deadline)
    return counts


def laws_hold(inputs):
    """Run the tests of laws and the fuzz tests; returns whether they passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LAWS]
    return not subprocess.run(command, env={**os.environ, "FUZZ": str(inputs)}).returncode


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--inputs", type=int, default=10_000, help="random ones of each reader")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="of steps, and of kills"
    )
    arguments = parser.parse_args(argv)
    seconds = 60 * arguments.minutes
    Project.has_snakemake = True
    steps = Project.counts
    repeat(lambda: run_projects(3), steps, "steps", arguments.steps, time.monotonic() + seconds)
    killed = {engine: kill(engine, arguments.kills // 2, seconds / 2) for engine in kills.COMMANDS}
    tried = {
        "random edits and faults": steps["steps"],
        "runs after them": steps["runs"],
        "stages that ran": steps["stages"],
        "interrupted runs": steps["interrupts"],
        **{f"kills of {engine}": counts["stopped"] for engine, counts in killed.items()},
        "random inputs of each reader": arguments.inputs,
    }
    total = sum(killed.values(), steps)
    failed = {
        "runs of other stages than needed": total["disagreements"],
        "wrong results": total["wrong"],
        "runs that refused": total["refusals"] + total["refused"],
        "failures": total["failures"],
        "failed runs of the laws": int(not laws_hold(arguments.inputs)),
    }
    rows = [{"count": name, "number": number} for name, number in {**tried, **failed}.items()]
    benchmarks.report(rows, arguments.file)
    sys.exit(any(failed.values()))


if __name__ == "__main__":
    main()
