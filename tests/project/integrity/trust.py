"""Random steps, kills and inputs for long; writes the counts as JSON: `make trust`.

`python -m tests.project.integrity.trust FILE --steps 2000 --kills 500`.
"""

import argparse
import json
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

STEPS = 60  # of one project
LAWS = ["tests/tasks/test_laws.py", "tests/test_fuzz.py"]


def run(steps, deadline=float("inf")):
    """Run projects of 60 steps until there are so many steps; returns the counts.

    A failure is printed and counted.
    """
    while Project.counts["steps"] < steps and time.monotonic() < deadline:
        try:
            run_projects(3)
        except Exception:
            traceback.print_exc()
        print(dict(Project.counts), flush=True)
    return Project.counts


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


def kill(number, deadline=float("inf")):
    """Kill both engines of toy projects; returns the counts of `kills`."""
    counts = Counter()
    for engine in kills.COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DVC_SITE_CACHE_DIR"] = f"{folder}/dvc"
            try:
                counts += kills.run(Path(folder, "toy"), engine, number // 2, deadline=deadline)
            except AssertionError:
                traceback.print_exc()
                counts["wrong"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--inputs", type=int, default=10_000, help="random ones of each reader")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="of steps, and of kills"
    )
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes
    Project.has_snakemake = True
    steps = run(arguments.steps, deadline=time.monotonic() + seconds)
    killed = kill(arguments.kills, deadline=time.monotonic() + seconds)
    laws = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *LAWS],
        env={**os.environ, "FUZZ": str(arguments.inputs)},
    )
    figures = {
        "steps": steps["steps"],
        "runs": steps["runs"],
        "interrupts": steps["interrupts"],
        "stages": steps["stages"],
        "disagreements": steps["disagreements"],
        "kills": killed["stopped"],
        "wrong_results": steps["wrong"] + killed["wrong"],
        "refusals": steps["refusals"] + killed["refused"],
        "inputs": arguments.inputs,
        "laws_hold": not laws.returncode,
    }
    arguments.file.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
