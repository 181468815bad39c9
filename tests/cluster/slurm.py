"""A Slurm of its own on this machine, for tests: munged, slurmctld, and a slurmd for each node.

Everything it has lies in one folder, it listens on the loopback alone, and it ends by the numbers
of the processes that it has started.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
PLACES = f"{os.environ['PATH']}:/usr/sbin:/sbin"
SECONDS = 300  # for all to be up, on a busy machine

CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmctldParameters=enable_configless
SlurmUser={user}
SlurmdUser={user}
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MinJobAge=86400
MessageTimeout=100
BatchStartTimeout=600
KillWait=2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}"
    " RealMemory={memory}"
)


def free_ports(count):
    with ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


@contextmanager
def started(name, *arguments, log, **environment):
    """A server in the foreground; it is ended, by its number."""
    program = shutil.which(name, path=PLACES)
    with log.open("ab") as file:
        process = subprocess.Popen(
            [program, *map(str, arguments)],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment, "PATH": PLACES},
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class NotUpError(RuntimeError):
    """Slurm is not installed, or does not start here; the message has the ends of its logs."""


@contextmanager
def cluster(*, nodes=2, cpus=1, memory=6000):
    """Run one; gives the variables with which `sbatch` and the others find it."""
    if lacking := [name for name in NEEDED if shutil.which(name, path=PLACES) is None]:
        raise NotUpError(f"Slurm, without {', '.join(lacking)}")
    # Not in a folder of a test: the paths of its sockets may have 108 characters, and no more.
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        yield from _cluster(Path(folder), nodes, cpus, memory)


def _cluster(folder, nodes, cpus, memory):
    """The same in an empty folder."""
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host, ports = socket.gethostname().partition(".")[0], free_ports(nodes + 1)
    names = [f"node{number}" for number in range(1, nodes + 1)]
    lines = [
        NODE.format(name=name, host=host, port=port, cpus=cpus, memory=memory)
        for name, port in zip(names, ports[1:], strict=True)
    ]
    conf = folder / "slurm.conf"
    conf.write_text(
        CONF.format(
            host=host, ports=ports, user=getpass.getuser(), folder=folder, nodes="\n".join(lines)
        )
    )
    where = {"SLURM_CONF": str(conf), "PATH": f"{_commands(folder, conf)}:{os.environ['PATH']}"}
    with ExitStack() as held:
        run = lambda *command, log: held.enter_context(  # noqa: E731
            started(*command, log=folder / f"{log}.out", **where)
        )
        run(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munged.seed",
            log="munged",
        )
        wait_for((folder / "munge.socket").exists, folder)
        (folder / "state").mkdir()
        run("slurmctld", "-D", "-f", conf, log="slurmctld")
        for name in names:
            (folder / f"spool-{name}").mkdir()
            run("slurmd", "-D", "-N", name, "-f", conf, log=f"slurmd-{name}")
        wait_for(lambda: _idle(where) == nodes, folder)
        held.callback(wait_for, lambda: _idle(where) == nodes, folder)
        held.callback(subprocess.run, ["scancel", "--partition=main"], env={**os.environ, **where})
        yield where


def _commands(folder, conf):
    """A folder with Slurm's commands: the plugin of Snakemake takes SLURM_CONF from its jobs."""
    commands = folder / "bin"
    commands.mkdir()
    for name in ("sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol"):
        script = commands / name
        program = shutil.which(name, path=PLACES)
        script.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {program} "$@"\n')
        script.chmod(0o755)
    return commands


def _idle(where):
    """How many nodes wait for work."""
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%t"],
        env={**os.environ, **where},
        capture_output=True,
        text=True,
    )
    return done.stdout.split().count("idle")


def wait_for(true, folder):
    """Wait until a function returns true; raises NotUpError with the logs in a folder."""
    deadline = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > deadline:
            logs = [*folder.glob("*.log"), *folder.glob("*.out")]
            texts = "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)
            raise NotUpError(f"nothing is up after {SECONDS} s\n{texts}")
        time.sleep(0.2)
