"""Lines of Python by folder, and the most that each may have: `make lines` prints them.

A feature that needs more lines names in its commit what it replaces. A budget only falls.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = {
    "stages": 598,
    "wxb/core": 2116,
    "wxb/corpora": 2573,
    "wxb/metrics": 544,
    "wxb/models": 2624,
    "wxb/training": 1570,
    "wxb/tasks": 9082,
    "wxb/reporting": 1506,
    "wxb/project": 2952,
    "wxb/cli": 2537,
    "wxb/lessons": 644,
    "wxb/runtime": 558,
    "wxb/masking": 832,
    "demos": 2086,
    "benchmarks": 4425,
    "tests": 28000,
}


# Another task is not limited.
TASKS = ("chat", "classification", "ner", "speech", "translation")


def count(folder):
    """The lines of all Python files below a folder of the project."""
    files = [*(ROOT / folder).rglob("*.py")]
    if folder == "wxb/tasks":
        tasks = [ROOT / folder / task for task in ("", *TASKS)]
        files = [file for file in files if {file.parent, file.parent.parent} & {*tasks}]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


if __name__ == "__main__":
    for folder, budget in BUDGET.items():
        print(f"{folder:14} {count(folder):6,} of {budget:6,}")
    code = sum(count(folder) for folder in BUDGET if folder.startswith(("stages", "wxb/")))
    print(f"{'wxb and stages':14} {code:6,}")
