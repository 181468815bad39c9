"""`install.py`: which commands it runs, when .venv is complete, and one real installation."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import pytest

import install
from tests.project_copy import ROOT

PROJECT = ("Makefile", "install.py", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")


class Commands:
    """Records the commands of install.py instead of running them; some can fail."""

    def __init__(self):
        self.names = []
        self.failures = {}
        self.arguments = {}

    def run(self, *command, **options):
        name = "uv" if command[0].endswith("/uv") else command[2]
        name = f"bootstrap {name}" if install.UV in command else name
        self.names.append(name)
        self.arguments[name] = command
        if name == "venv":
            shutil.rmtree(install.VENV, ignore_errors=True)
            install.VENV.mkdir()
        if name in self.failures:
            raise self.failures[name]
        return ""

    def since(self, call, *arguments):
        """The names of the commands that a call runs."""
        self.names.clear()
        call(*arguments)
        return [name for name in self.names if name in ("venv", "uv") or self.is_fallback(name)]

    def is_fallback(self, name):
        return name == "pip" and "install" in self.arguments[name]


@pytest.fixture
def commands(cwd, monkeypatch):
    for name in install.SOURCES:
        Path(name).touch()
    commands = Commands()
    monkeypatch.setattr(install, "run", commands.run)
    monkeypatch.setenv("UV_TORCH_BACKEND", "auto")
    return commands


FAILURE = subprocess.CalledProcessError(3, "pip")
FRESH = ["venv", "uv"]


def test_a_complete_environment_is_kept(commands):
    assert commands.since(install.main) == FRESH
    assert commands.since(install.main) == []


@pytest.mark.parametrize("name", install.SOURCES)
def test_changed_requirements_are_installed_into_it(commands, name):
    install.main()
    later = Path(name).stat().st_mtime + 60
    install.os.utime(name, (later, later))
    assert commands.since(install.main) == ["uv"]


def test_a_moved_environment_is_created_again(commands, monkeypatch):
    install.main()
    shutil.copytree(".", "moved/x")
    monkeypatch.chdir("moved/x")
    assert commands.since(install.main) == FRESH


def test_the_target_of_a_link_is_not_emptied(commands):
    Path("other").mkdir()
    install.VENV.symlink_to("other")
    Path("other/file").touch()
    with pytest.raises(SystemExit, match=r"\.venv links to"):
        install.main()
    assert (commands.names, Path("other/file").exists()) == ([], True)


def test_a_failed_installation_starts_again(commands):
    commands.failures = {"uv": FAILURE, "pip": FAILURE}
    with pytest.raises(SystemExit) as stopped:
        install.main()
    assert stopped.value.code == 3
    commands.failures = {}
    assert commands.since(install.main) == FRESH


def test_interrupted_additions_do_not(commands):
    install.main()
    commands.failures = {"uv": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        install.main("--editable", ".[dev]")
    commands.failures = {}
    assert commands.since(install.main) == FRESH


@pytest.mark.parametrize("failing", ["bootstrap pip", "uv"])
def test_pip_installs_what_uv_cannot(commands, failing):
    commands.failures = {failing: FAILURE}
    assert commands.since(install.main)[-1] == "pip"
    assert commands.arguments["pip"][3:] == (
        *("install", "--quiet", "--disable-pip-version-check", "--no-compile", "--use-pep517"),
        *install.LOCK,
    )


def test_uv_has_the_configuration_of_pip(tmp_path):
    pytest.importorskip("pip")
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex_url = https://mirror.example/simple\n"
        "extra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n"
        "trusted-host = mirror.example\ncert = /etc/company.pem\nproxy = http://proxy:3128\n"
        "find-links = /never\ntimeout = 20\n"
        "[install]\nfind-links = ~/wheels\n[freeze]\nfind-links = /never\n"
    )
    variables = {"PIP_CONFIG_FILE": tmp_path / "pip.conf", "PIP_TIMEOUT": "40", "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-m", "pip", "config", "list"]
    settings = install.pip_settings(subprocess.check_output(command, env=variables, text=True))
    assert install.uv_options(settings) == [
        *("--index-strategy", "unsafe-best-match", "--no-index"),
        # The main index comes first: of one version uv uses the wheels of one index only.
        *("--index", "https://mirror.example/simple", "--index", "https://a.example/simple"),
        *("--default-index", "https://b.example/simple"),
        *("--find-links", str(Path("~/wheels").expanduser())),
        *("--allow-insecure-host", "mirror.example", "--cert", "/etc/company.pem"),
    ]
    assert install.uv_variables(settings) == {
        "UV_SYSTEM_CERTS": "true",
        "ALL_PROXY": "http://proxy:3128",
        "UV_HTTP_TIMEOUT": "40",
    }


@pytest.mark.parametrize(
    ("settings", "has_gpu", "variable", "is_reached", "options"),
    [
        ({"cert": "/etc/company.pem"}, False, "", True, ["--torch-backend", "cpu"]),
        ({}, True, "", True, []),
        ({"index-url": "/wheels"}, False, "", True, []),
        ({"no-index": "1"}, False, "", True, []),
        ({}, False, "cu130", True, []),
        ({}, False, "", False, []),
    ],
)
def test_torch_is_the_cpu_build_unless_there_is_a_gpu_or_a_choice(
    monkeypatch, settings, has_gpu, variable, is_reached, options
):
    def urlopen(*_, **__):
        if not is_reached:
            raise URLError("no such host")
        return io.BytesIO()

    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    if variable:
        monkeypatch.setenv("UV_TORCH_BACKEND", variable)
    monkeypatch.setattr(install.sys, "platform", "linux")
    monkeypatch.setattr(install.shutil, "which", lambda _: "/usr/bin/nvidia-smi" * has_gpu)
    monkeypatch.setattr(install.Path, "exists", lambda _: False)
    monkeypatch.setattr(install.urllib.request, "urlopen", urlopen)
    assert install.torch_options(settings) == options


@pytest.mark.slow
def test_a_clone_is_installed_without_a_cache(tmp_path):
    folder, cache = tmp_path / "project", str(tmp_path / "cache")
    for name in ("wxb", "stages", "demos"):
        shutil.copytree(ROOT / name, folder / name)
    for name in PROJECT:
        shutil.copy(ROOT / name, folder)
    # What an installation with `touch` at its end left when it was killed before.
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/run").touch()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(Path.home()),  # of pip's configuration, as are the variables
        **kept,
        "PIP_CACHE_DIR": cache,
        "UV_CACHE_DIR": cache,
    }
    command = ["make", ".venv/run", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "uv failed" not in done.stdout
    shown = subprocess.run(
        [".venv/bin/wxb", "--help"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    assert "doctor" in shown.stdout
    shutil.rmtree(folder)  # gigabytes
    shutil.rmtree(cache)
