"""Lines of Python by folder, and the most that each may have: `make lines` prints them.

`wxb/tasks` has room for a method or a metric. A feature that needs more lines than its folder has
names in its commit what it replaces.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = {
    "stages": 620,
    "wxb/core": 2193,
    "wxb/corpora": 2682,
    "wxb/metrics": 543,
    "wxb/models": 2386,
    "wxb/training": 1538,
    "wxb/tasks": 9103,
    "wxb/reporting": 1445,
    "wxb/project": 2668,
    "wxb/cli": 2373,
    "wxb/lessons": 590,
    "wxb/runtime": 543,
    "wxb/masking": 846,
    "demos": 1886,
    "docs": 281,
    "benchmarks": 4425,
    "tests": 28000,
}
TASKS = ("chat", "classification", "ner", "speech", "translation")  # another is not limited


def count(folder):
    """The lines of all Python files below a folder of the project, without those of other tasks."""
    others = {
        path
        for parent in ("wxb/tasks", "tests/tasks")
        for path in (ROOT / parent).iterdir()
        if path.is_dir() and path.name not in TASKS
    }
    files = [file for file in (ROOT / folder).rglob("*.py") if not others & {*file.parents}]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


if __name__ == "__main__":
    for folder, budget in BUDGET.items():
        print(f"{folder:14} {count(folder):6,} of {budget:6,}")
    print(f"{'wxb and stages':14} {count('wxb') + count('stages'):6,}")
