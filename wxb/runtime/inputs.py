"""The inputs that dvc.yaml declares for a stage, compared before the stage publishes.

DVC hashes the inputs of a stage when the stage has ended. Without this check it would record an
input that changed meanwhile as the origin of the results.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError, shortened
from wxb.core.files import sha256
from wxb.core.params import PARAMS, read_yaml

DVC_YAML = Path("dvc.yaml")
HASHED = 2**20  # bytes; files up to this size, such as code, are compared by their content
SHOWN = 3  # most inputs in a message
VARIABLE = re.compile(r"\$\{(key|item\.\w+)\}")

Inputs = Mapping[str, Any]


def read(stage: str) -> Inputs:
    """Values of the parameters and fingerprints of the files of a stage; {} if not in dvc.yaml."""
    if not DVC_YAML.exists():
        return {}
    verb, _, name = stage.partition("@")
    params = read_yaml(PARAMS)
    block = _get(read_yaml(DVC_YAML), "stages", verb) or {}
    item = _get(params, str(block.get("foreach", "")).strip("${}"), name) or {}
    values = {"key": name, **{f"item.{key}": str(value) for key, value in item.items()}}
    block = block.get("do", block)

    def resolve(text: str) -> str:
        return VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)

    result: dict[str, Any] = {}
    for key in map(resolve, block.get("params", ())):
        result[f"{PARAMS}: {key}"] = _get(params, *key.split("."))
    for path in map(resolve, block.get("deps", ())):
        for file in _files(Path(path)):
            result[str(file)] = _fingerprint(file)
    return result


def require_unchanged(stage: str, before: Inputs) -> None:
    """Raise WxbError if an input of a stage differs from `before`."""
    after = read(stage)
    if changed := [key for key in {**before, **after} if before.get(key) != after.get(key)]:
        names = shortened(changed, SHOWN)
        raise WxbError(f"inputs of {stage} changed while it ran, so nothing was published: {names}")


def _get(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, which may be absent, or the files in a folder.

    Skips hidden files and `__pycache__`, but not the files in hidden folders.
    """
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.is_file() and "__pycache__" not in parts and not parts[-1].startswith("."):
            yield file


def _fingerprint(file: Path) -> str:
    """The hash of a small file, else modification time, size and inode; "absent" without one."""
    try:
        status = file.stat()
        if status.st_size <= HASHED:
            return sha256(file)
    except FileNotFoundError:
        return "absent"
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"
