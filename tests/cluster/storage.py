"""Places to keep what DVC tracks, on this machine alone: a folder, an sshd and an S3 API."""

import getpass
import shutil
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.cluster.slurm import PLACES, SECONDS, free_ports, started, wait_for
from tests.project_copy import Project

BUCKET = "wxb"

SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


def lacking(kind):
    """What is not installed here of what a kind of storage needs."""
    programs = {"ssh": ["sshd", "ssh-keygen"]}.get(kind, [])
    packages = {"ssh": ["dvc_ssh"], "s3": ["dvc_s3", "moto", "flask"]}.get(kind, [])
    return [
        *(name for name in programs if shutil.which(name, path=PLACES) is None),
        *(name for name in packages if find_spec(name) is None),
    ]


def storage(kind, folder):
    """Run one; gives its address and the settings of `dvc remote modify --local` that reach it."""
    folder.mkdir(parents=True)
    return {"local": _local, "ssh": _ssh, "s3": _s3}[kind](folder)


@contextmanager
def _local(folder):
    yield str(folder), {}


@contextmanager
def _ssh(folder):
    for name in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(command, check=True)
    (port,) = free_ports(1)
    conf = folder / "sshd_config"
    conf.write_text(SSHD.format(port=port, folder=folder))
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path=PLACES)  # it wants to be called by its whole path
    with started(program, "-D", "-e", "-f", conf, log=folder / "sshd.log"):
        wait_for(lambda: _listens(port), folder)
        user = getpass.getuser()
        yield f"ssh://{user}@127.0.0.1:{port}{folder}/store", {"keyfile": folder / "user_key"}


@contextmanager
def _s3(folder):
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    settings = {
        "endpointurl": address,
        "access_key_id": "key",
        "secret_access_key": "secret",
        "region": "us-east-1",
    }
    server = ["-m", "moto.server", "-H", "127.0.0.1", "-p", port]
    with started(sys.executable, *server, log=folder / "moto.log"):
        wait_for(lambda: _listens(port), folder)
        bucket = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
        urllib.request.urlopen(bucket, timeout=SECONDS).close()
        yield f"s3://{BUCKET}/store", settings


def _listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def share(project, name, address, settings):
    """Send what a project has made to a storage, as its default."""
    project.run("dvc", "remote", "add", "--default", name, address)
    _configure(project, name, settings)
    project.run("dvc", "push", "--quiet")
    project.commit("share")


COLLEAGUE = (
    ["dvc", "pull", "--quiet", "--allow-missing"],
    ["dvc", "status", "report@ner"],
    ["wxb", "table", "ner"],
)


def fetched(project, name, folder, settings):
    """Do as a colleague does: clone, pull, ask for what is to be done; gives what that says."""
    project.run("git", "clone", "--quiet", project.folder, folder)
    colleague = Project(folder)
    _configure(colleague, name, settings)
    return "".join(colleague.run(*command) for command in COLLEAGUE)


def _configure(project, name, settings):
    for key, value in settings.items():
        project.run("dvc", "remote", "modify", "--local", name, key, str(value))
