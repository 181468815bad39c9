"""Which stages of a DVC project have to run, and what they write: from dvc.yaml and files alone.

A stage has to run if its result is nowhere: not in the workspace as its last run left it, and not
in DVC's cache as any run with the same command, dependencies and parameters left it.
"""

import hashlib
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

Files = dict[str, bytes]


@dataclass(frozen=True)
class Stage:
    name: str
    cmd: str
    deps: list[str]
    params: list[str]
    outs: dict[str, bool]  # whether DVC caches it

    def inputs(self, files: Files) -> str:
        """A hash of all that the result depends on."""
        params = json.loads(files["params.yaml"])
        values = {}
        for name in self.params:
            value = params
            for key in name.split("."):
                value = value[key]
            values[name] = value
        contents = {dep: hashes(under(files, dep)) for dep in self.deps}
        text = json.dumps([self.cmd, contents, values, sorted(self.outs)], sort_keys=True)
        return hashlib.md5(text.encode()).hexdigest()


def stages(files: Files) -> list[Stage]:
    """The stages of dvc.yaml, upstream first: the file has them in this order."""
    params = json.loads(files["params.yaml"])
    result = []
    for verb, block in YAML(typ="safe").load(files["dvc.yaml"])["stages"].items():
        if "foreach" not in block:
            result.append(_stage(verb, block))
            continue
        for key, item in params[block["foreach"][2:-1]].items():
            text = json.dumps(block["do"]).replace("${key}", key)
            text = re.sub(r"\$\{item\.(\w+)\}", lambda match, item=item: item[match[1]], text)
            result.append(_stage(f"{verb}@{key}", json.loads(text)))
    return result


def _stage(name: str, block: dict) -> Stage:
    outs = {}
    for entry in [out for kind in ("outs", "metrics", "plots") for out in block.get(kind, ())]:
        outs |= {entry: True} if isinstance(entry, str) else dict.fromkeys(entry, False)
    return Stage(name, block["cmd"], block["deps"], block.get("params", []), outs)


def under(files: Files, path: str) -> Files:
    """A file, or the files of a folder."""
    return {name: content for name, content in files.items() if _is_in(name, path)}


def _is_in(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def hashes(files: Files) -> dict[str, str]:
    return {name: hashlib.md5(content).hexdigest() for name, content in sorted(files.items())}


def objects(path: str, files: Files) -> set[str]:
    """The names of the objects of DVC's cache that hold an output."""
    contents = hashes(files)
    if path in contents:
        return {*contents.values()}
    listing = [{"md5": md5, "relpath": name[len(path) + 1 :]} for name, md5 in contents.items()]
    return {hashlib.md5(json.dumps(listing).encode()).hexdigest() + ".dir", *contents.values()}


def read(folder: Path) -> Files:
    """All files of the project but those of git, DVC and Snakemake, and Python's caches."""
    skipped = {".git", ".dvc", ".snakemake", "__pycache__", "logs"}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if not skipped & {*path.relative_to(folder).parts} and path.is_file()
    }


@dataclass
class Expectation:
    """What a run does: the stages that have to run, and the files of all its stages."""

    due: set[str] = field(default_factory=set)
    files: Files = field(default_factory=dict)


@dataclass
class Oracle:
    """Knows the runs so far: each stage's last one, and all that DVC's run cache has.

    `last` has a hash of the inputs and the outputs by stage, `known` hashes of inputs.
    """

    last: dict[str, tuple[str, dict[str, Files]]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    built: dict[str, Files] = field(default_factory=dict)  # by hash of the inputs

    def expect(self, folder: Path, target: str = "") -> Expectation:
        """Expect a run of a target and all that it depends on, or of all stages.

        Also takes it as done. Before it, outputs that the cache lacks come back from the workspace.
        """
        workspace = read(folder)
        everything = stages(workspace)
        outs = [out for stage in everything for out in stage.outs]
        cache = self._repaired_cache(folder, workspace, everything)
        # What no stage writes: sources, and what removed experiments left.
        rest = {n: c for n, c in workspace.items() if not any(_is_in(n, out) for out in outs)}
        sources = {n: c for n, c in rest.items() if not n.startswith(("reports/", "models/"))}
        clean, result = dict(sources), Expectation()
        needed = _needed(everything, target)
        for stage in everything:
            made = self._build(stage, clean)
            clean |= made
            if stage.name not in needed:
                continue
            inputs = stage.inputs({**rest, **result.files})
            parts = {out: under(made, out) for out in stage.outs}
            names = set().union(*(objects(out, files) for out, files in parts.items()))
            is_intact = all(under(workspace, out) == files for out, files in parts.items())
            if is_intact and self.last.get(stage.name, [""])[0] == inputs:
                pass
            elif inputs in self.known | {self.last.get(stage.name, [""])[0]} and names <= cache:
                self.known.add(inputs)
            else:
                result.due.add(stage.name)
                self.known.add(inputs)
                cache |= names
            self.last[stage.name] = (inputs, parts)
            result.files |= made
        return result

    def _repaired_cache(self, folder: Path, workspace: Files, everything: list[Stage]) -> set[str]:
        cache = {p.parent.name + p.name for p in (folder / ".dvc/cache/files/md5").glob("??/*")}
        for stage in everything:
            for out, files in self.last.get(stage.name, ("", {}))[1].items():
                if stage.outs.get(out) and under(workspace, out) == files:
                    cache |= objects(out, files)
        return cache

    def _build(self, stage: Stage, clean: Files) -> Files:
        """The outputs of a stage, run in a new folder with its dependencies only."""
        deps = {n: c for n, c in clean.items() if any(_is_in(n, dep) for dep in stage.deps)}
        inputs = stage.inputs(deps | {"params.yaml": clean["params.yaml"]})
        if inputs not in self.built:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                given = {**deps, "params.yaml": clean["params.yaml"], "logs/started": b""}
                for path, content in given.items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(content)
                subprocess.run(stage.cmd.split(), cwd=folder, check=True)
                files = read(folder)
            self.built[inputs] = {n: c for n, c in files.items() if n not in given}
            assert all(any(_is_in(n, out) for out in stage.outs) for n in self.built[inputs])
        return self.built[inputs]


def _needed(everything: list[Stage], target: str) -> set[str]:
    """The names of a target and of all stages upstream of it."""
    if not target:
        return {stage.name for stage in everything}
    needed, deps = set(), set()
    for stage in reversed(everything):
        if stage.name == target or any(
            _is_in(out, dep) or _is_in(dep, out) for out in stage.outs for dep in deps
        ):
            needed.add(stage.name)
            deps |= {*stage.deps}
    return needed
