"""Count the defects of mutations.yaml that the tests notice; without a defect they must pass.

`python benchmarks/mutations.py TREE --output FILE` edits a clone of this project, one mutation at a
time, and runs its tests.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.files import write_json
from wxb.core.params import read_yaml

MUTATIONS = Path(__file__).with_suffix(".yaml")
TIMEOUT = 600  # seconds of the tests of one mutation


def main() -> None:
    """Print whether each mutation is killed, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="the clone to edit")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--only", metavar="NAME", nargs="*", help="the mutations to run")
    arguments = parser.parse_args()
    mutations = [m for m in read_yaml(MUTATIONS) if m["name"] in (arguments.only or m["name"])]
    texts = [mutated(arguments.tree, mutation) for mutation in mutations]
    outcomes = {}
    for mutation, text in zip(mutations, texts, strict=True):
        outcomes[mutation["name"]] = outcome(arguments.tree, mutation, text)
        print(f"{mutation['name']}: {outcomes[mutation['name']]}", flush=True)
        write_json(arguments.output, outcomes)
    killed = sum(value == "killed" for value in outcomes.values())
    print(f"{killed} of {len(outcomes)} killed")


def mutated(tree: Path, mutation: Mapping[str, Any]) -> str:
    """The text of the mutated file. Raises ValueError unless it has `old` once."""
    text = (tree / mutation["file"]).read_text(encoding="utf-8")
    if (count := text.count(mutation["old"])) != 1:
        raise ValueError(f"{mutation['name']}: {mutation['file']} has `old` {count} times")
    return text.replace(mutation["old"], mutation["new"])


def outcome(tree: Path, mutation: Mapping[str, Any], text: str) -> str:
    """`killed` if a test fails, `survived` if none does, or why neither is certain."""
    path = tree / mutation["file"]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", *mutation["tests"]]
    command += [] if mutation.get("slow") else ["-m", "not slow"]
    original = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    try:
        done = subprocess.run(command, cwd=tree, timeout=TIMEOUT, capture_output=True)
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_bytes(original)
    return {0: "survived", 1: "killed"}.get(done.returncode, f"pytest ended with {done.returncode}")


if __name__ == "__main__":
    main()
