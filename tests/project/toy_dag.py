"""A toy project that both engines run, with the Snakefile and the engines' code of this one."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from dvc.repo import Repo

HOME = Path(__file__).resolve().parents[2]

DVC_YAML = """
stages:
  download:
    foreach: ${corpora}
    do:
      cmd: python stages/lower.py raw/${key}.txt data/${key}.txt
      deps: [stages/lower.py, "raw/${key}.txt"]
      outs: ["data/${key}.txt"]
  train:
    foreach: ${experiments}
    do:
      cmd: python stages/train.py ${key}
      deps: [stages/train.py, "data/${item.corpus}.txt"]
      params: ["experiments.${key}"]
      outs:
        - reports/metrics/${item.study}/${key}.json: {cache: false}
  compare:
    foreach: ${studies}
    do:
      cmd: python stages/compare.py ${key}
      deps: [stages/compare.py, "reports/metrics/${key}"]
      outs: ["reports/studies/${key}.csv"]
  report:
    foreach: ${studies}
    do:
      cmd: python stages/lower.py reports/studies/${key}.csv reports/${key}.html
      deps: [stages/lower.py, "reports/studies/${key}.csv"]
      outs: ["reports/${key}.html"]
"""
PARAMS = """
corpora: {a: {}, b: {}}
experiments:
  x: {corpus: a, study: s, rate: 1, seconds: 0}
  z-1: {corpus: b, study: t, rate: 3, seconds: 0}
studies: {s: {}, t: {}}
"""
LOWER = """
import os, sys
from pathlib import Path
assert sys.prefix == os.environ["EXPECTED_PREFIX"], sys.prefix
source, target = map(Path, sys.argv[1:])
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(source.read_text().lower())
"""
TRAIN = """
import sys, time
from pathlib import Path
from ruamel.yaml import YAML
name = sys.argv[1]
log = Path(f"logs/train@{name}.log")
log.parent.mkdir(parents=True, exist_ok=True)
log.write_text("started")
item = YAML().load(Path("params.yaml"))["experiments"][name]
time.sleep(item["seconds"])
while Path("hold").exists():
    time.sleep(0.05)
if item["rate"] < 0:
    log.write_text("rate must not be negative")
    sys.exit("rate must not be negative")
target = Path(f"reports/metrics/{item['study']}/{name}.json")
target.parent.mkdir(parents=True, exist_ok=True)
words = Path(f"data/{item['corpus']}.txt").read_text().split()
target.write_text(f'{{"n": {len(words) * item["rate"]}}}')
"""
COMPARE = """
import sys
from pathlib import Path
study = sys.argv[1]
target = Path(f"reports/studies/{study}.csv")
target.parent.mkdir(parents=True, exist_ok=True)
files = sorted(Path(f"reports/metrics/{study}").iterdir())
target.write_text("".join(f"{path.stem},{path.read_text()}\\n" for path in files))
"""
PARAMS_MODULE = """
from pathlib import Path
from types import SimpleNamespace
from wxb.core.errors import WxbError, counted
PARAMS = Path("params.yaml")
class ParamsError(WxbError): ...
def load():
    if "rat:" in Path("params.yaml").read_text():
        raise ParamsError("params.yaml: unknown key rat, did you mean rate?")
    return SimpleNamespace(
        experiments={}, threads=1, processes=lambda stage: 1, snakemake_resources=lambda stage: {}
    )
"""


FILES = {
    "dvc.yaml": DVC_YAML,
    "params.yaml": PARAMS,
    "raw/a.txt": "one two\n",
    "raw/b.txt": "three\n",
    "stages/lower.py": LOWER,
    "stages/train.py": TRAIN,
    "stages/compare.py": COMPARE,
}


def create(project: Path, files: Mapping[str, str] = FILES) -> Path:
    """Create a project of these files in a new folder; nothing has run in it."""
    files = {**files, "wxb/__init__.py": "", "wxb/core/params/__init__.py": PARAMS_MODULE}
    for name in (
        "Snakefile",
        "profiles/default/config.yaml",
        "wxb/core/__init__.py",
        "wxb/core/errors.py",
        "wxb/core/files.py",
        "wxb/core/params/section.py",
        "wxb/core/paths.py",
        "wxb/project/status.py",
        "wxb/project/engines.py",
        "wxb/project/revisions.py",
        "wxb/project/dvc.py",
        "wxb/project/repair.py",
        "wxb/project/root.py",
        "wxb/runtime/__init__.py",
        "wxb/runtime/engine.py",
        "wxb/runtime/locks.py",
    ):
        files[name] = (HOME / name).read_text()
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    Repo.init(str(project)).close()
    (project / ".dvc/config").write_text("[core]\n    analytics = false\n")
    return project
