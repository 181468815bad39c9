"""Install packages into .venv with uv, or with pip if uv fails.

    python3 install.py               create .venv, install requirements.txt and the project
    python3 install.py ARGUMENT...   install more; the arguments are those of `pip install`

Runs on any Python from 3.11 on, with the standard library only. uv is faster than pip, and builds
source distributions that the pip of Debian 12 cannot. It ignores pip's configuration, so its
indexes, proxies and certificates are translated.
"""

from __future__ import annotations

import ast
import os
import platform
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

UV = "uv==0.13.9"
VENV = Path(".venv")
PYTHON = VENV / "bin" / "python"
LOCK = ("--requirement", "requirements.txt", "--editable", ".")
SOURCES = ("requirements.txt", "pyproject.toml")

# Exists while .venv is complete. Make compares its time with those of SOURCES and of later targets.
COMPLETE = VENV / "run"
INTERRUPTED = VENV / "interrupted"

PYPI = "https://pypi.org/simple"
INDEXES = ("index-url", "extra-index-url", "find-links", "no-index")
OPTIONS = {
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
    "cert": "--cert",
}
VARIABLES = {
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
TORCH_CPU = "https://download.pytorch.org/whl/cpu/torch/"


def main(*arguments: str) -> None:
    """Install what the arguments name; without arguments, whatever .venv/run lacks."""
    if sys.version_info < (3, 11):  # noqa: UP036 - make may name an older one
        sys.exit("wxb needs Python 3.11 or later; try: make PYTHON=python3.11")
    try:
        if arguments:
            install(*arguments)
        elif not is_complete() or is_outdated():
            if not is_complete() and VENV.is_symlink() and VENV.is_dir() and any(VENV.iterdir()):
                sys.exit(f".venv links to {VENV.resolve()}: empty that folder, or remove the link")
            print(f"Installing into .venv with Python {platform.python_version()}", flush=True)
            if not is_complete():
                run(sys.executable, "-m", "venv", "--clear", str(VENV))
            install(*LOCK)
            COMPLETE.write_text(identity())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


def identity() -> str:
    """What a complete environment records: its Python, and its folder, which its scripts name."""
    return f"Python {platform.python_version()} in {VENV.resolve()}\n"


def is_complete() -> bool:
    """Check that .venv was installed to the end, here, with this version of Python."""
    return COMPLETE.exists() and COMPLETE.read_text() == identity()


def is_outdated() -> bool:
    """Check whether the lock or the project's dependencies changed after the installation."""
    installed = COMPLETE.stat().st_mtime
    return any(Path(source).stat().st_mtime > installed for source in SOURCES)


def install(*arguments: str) -> None:
    """Install with uv, or with pip if uv fails; raises CalledProcessError if pip fails too.

    An interrupted installation may leave half a package that looks installed: until it ends, .venv
    counts as incomplete, and the next `make` creates it again.
    """
    if COMPLETE.exists():
        COMPLETE.replace(INTERRUPTED)
    try:
        if not install_with_uv(*arguments):
            print("uv failed; pip installs, more slowly, and perhaps torch for CUDA", flush=True)
            # An old pip builds source distributions without their build requirements otherwise.
            pip("install", "--use-pep517", *arguments)
    except subprocess.CalledProcessError:
        restore()
        raise
    restore()


def restore() -> None:
    """Mark .venv as complete again, with the time at which it became so."""
    if INTERRUPTED.exists():
        INTERRUPTED.replace(COMPLETE)


def install_with_uv(*arguments: str) -> bool:
    """Install uv, then with it the packages; returns whether both worked."""
    try:
        pip("install", "--only-binary", ":all:", UV)
        listing = run(str(PYTHON), "-m", "pip", "config", "list", stdout=subprocess.PIPE)
        settings = pip_settings(listing)
        command = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]
        command += [*uv_options(settings), *torch_options(settings), *arguments]
        run(*command, env={**os.environ, **uv_variables(settings)})
    except (subprocess.CalledProcessError, OSError):
        return False
    return True


def pip_settings(listing: str) -> dict[str, str]:
    """Parse `pip config list`: variables override [install], which overrides [global].

    Keys are the long options of `pip install` without dashes.
    """
    lines = [line.partition("=") for line in listing.splitlines()]
    return {
        key.removeprefix(section): ast.literal_eval(value)
        for section in ("global.", "install.", ":env:.")
        for key, _, value in lines
        if key.startswith(section)
    }


def uv_options(settings: dict[str, str]) -> list[str]:
    """Options with which uv uses pip's indexes and certificates as pip does.

    pip chooses among the wheels of all indexes. uv by default uses only the first index that has
    the package, and always only one for a version: the main one, which has all wheels, comes first.
    """
    options = ["--index-strategy", "unsafe-best-match"]
    if settings.get("no-index", "").lower() in ("1", "true", "t", "yes", "y", "on"):
        options.append("--no-index")
    if settings.keys() & {"index-url", "extra-index-url"}:
        main = settings.get("index-url", PYPI)
        *indexes, last = [main, *settings.get("extra-index-url", "").split()]
        options += [option for index in indexes for option in ("--index", index)]
        options += ["--default-index", last]  # uv searches the default last
    for key, option in OPTIONS.items():
        for value in settings.get(key, "").split():
            options += [option, os.path.expanduser(value)]  # noqa: PTH111 - a URL is no path
    return options


def uv_variables(settings: dict[str, str]) -> dict[str, str]:
    """Environment variables for the settings of pip that are no options of uv.

    Like pip, uv then trusts the certificates that the system trusts.
    """
    variables = {VARIABLES[key]: value for key, value in settings.items() if key in VARIABLES}
    return {"UV_SYSTEM_CERTS": "true", **variables}


def torch_options(settings: dict[str, str]) -> list[str]:
    """Choose torch's CPU build on Linux without an NVIDIA GPU: 2 GB installed instead of 6.

    PyTorch's index has it; on other systems, PyPI's build is for the CPU already. Configured
    indexes, UV_TORCH_BACKEND, or an index that cannot be reached leave the choice to uv.
    """
    chosen = "UV_TORCH_BACKEND" in os.environ or settings.keys() & {*INDEXES}
    has_gpu = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    if sys.platform != "linux" or chosen or has_gpu:
        return []
    try:
        urllib.request.urlopen(TORCH_CPU, timeout=5).close()
    except OSError:
        return []
    return ["--torch-backend", "cpu"]


def pip(verb: str, *arguments: str) -> None:
    """Run a command of .venv's pip.

    Compiling every module takes as long as all the rest; --no-compile leaves it to the first
    import, of what is imported at all.
    """
    quiet = ("--quiet", "--disable-pip-version-check")
    run(str(PYTHON), "-m", "pip", verb, *quiet, "--no-compile", *arguments)


def run(*command: str, **options: object) -> str:
    """Run a command, and return its output if that is a pipe; raises CalledProcessError."""
    done = subprocess.run(command, check=True, text=True, **options)  # type: ignore[call-overload]
    return done.stdout or ""


if __name__ == "__main__":
    main(*sys.argv[1:])
