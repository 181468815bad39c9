"""`make cluster`: run docs/cluster.md on this machine, and print a line for each check that passes.

Starts Slurm with two nodes, an sshd and an S3 API on the loopback, in a temporary folder, and stops
them by their process ids. Trains studies at size tiny, which takes minutes.
"""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.cluster import slurm, storage
from tests.project_copy import Project, keep_experiments
from tests.small_project import SmallProject
from wxb.training.checkpoints import SUMS

EXPERIMENTS = ["ner-encoder", "ner-decoder-lora"]
KILLED = "train@ner-encoder"
ON_LOGIN_NODE = ["align@ner-encoder", "align@ner-decoder-lora"]
SHARED = {"processes": 2}
PATIENCE = 600  # seconds
# A cluster has a queue to ask for accounts, and jobs of minutes; here there is none, and seconds.
SLURM = [
    *("--profile", "profiles/slurm", "--slurm-no-account", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
]


class Tiny(SmallProject):
    """The project with two experiments, which ask for memory and minutes."""

    def create(self):
        Project.create(self)
        self.edit(few)
        self.commit("begin")

    def curves(self):
        """The losses of all trainings by step."""
        losses = {}
        for path in self.folder.glob("reports/training/*/*/loss.csv"):
            with path.open(newline="") as rows:
                for row in csv.DictReader(rows):
                    losses[path.parent.name, int(row["step"])] = float(row["loss"])
        return losses


def few(params):
    keep_experiments(params, EXPERIMENTS)
    params["resources"] = {
        **{verb: {"mem_mb": 3000, "runtime": 30} for verb in ("pretrain", "train", "evaluate")},
        KILLED: {"mem_mb": 3500, "slurm_partition": "main"},
    }
    params["lessons"] = {}
    for name in EXPERIMENTS:  # each process draws its own dropout
        params["experiments"][name]["model"]["word_features"]["dropout"] = 0.0


def held(what, began):
    print(f"held: {what} ({time.monotonic() - began:.0f} s)", flush=True)


def on_slurm(here, project):
    """All but the first stages through sbatch, a job killed, to the bytes of a local run."""
    began = time.monotonic()
    project.run("dvc", "config", "--local", "core.hardlink_lock", "true")  # as on NFS
    with slurm.cluster() as where:
        project.environment |= where
        run = project.start("snakemake", *SLURM, "ner")
        try:
            _kill_training(project, run)
            said = run.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            run.kill()
            queue = project.run("squeue", "--states=all", "--format=%i|%T|%k")
            raise AssertionError(f"{run.communicate()[0][-3000:]}\n{queue}") from None
        finally:
            run.kill()
        assert run.returncode != 0, said[-2000:]
        said += project.run("snakemake", *SLURM, "ner")
        jobs = len(re.findall("submitted with SLURM", said))
        log = (project.folder / f"logs/{KILLED}.log").read_text()
        assert "resuming from" in log
        queue = project.run("squeue", "--states=all", "--noheader", "--format=%k|%m|%N|%T")
        assert f"rule_{KILLED}|3500M" in queue, queue
        nodes = {row.split("|")[2] for row in queue.split()}
        assert nodes == {"node1", "node2"}, queue
    assert project.hashes() == here.hashes()
    held(f"{jobs} jobs through sbatch on {len(nodes)} nodes, {KILLED} killed and gone on", began)
    print(f"      {len(here.hashes())} files, the same bytes as a local run", flush=True)


def _kill_training(project, run):
    """Kill the training of `KILLED` and its DVC at a checkpoint, as the kernel does without memory.

    DVC first: it would take the project's lock, and all others would wait for it if it died then.
    """
    deadline = time.monotonic() + PATIENCE
    verb, name = KILLED.split("@")
    while not any(project.folder.glob(f".wxb/checkpoints/{KILLED}-*/checkpoint-*/{SUMS}")):
        assert run.poll() is None, run.communicate()[0][-3000:]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)
    (training,) = (
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if (process.info["cmdline"] or [])[-2:] == [f"stages.{verb}", name]
        and process.info["cwd"] == str(project.folder)
    )
    next(parent for parent in training.parents() if parent.cmdline()[-1:] == [KILLED]).kill()
    training.kill()


def on_storage(here, folder):
    """A colleague's clone that pulls, finds nothing to do and shows the table."""
    for kind in ("local", "ssh", "s3"):
        if lacking := storage.lacking(kind):
            print(f"skipped: {kind}, without {', '.join(lacking)}", flush=True)
            continue
        began = time.monotonic()
        with storage.storage(kind, folder / kind) as (address, settings):
            storage.share(here, kind, address, settings)
            said = storage.fetched(here, kind, folder / f"colleague-{kind}", settings)
        assert "up to date" in said, said
        assert "ner-encoder" in said, said
        held(f"pushed to {address}, cloned, pulled: nothing to do, and wxb reads it", began)


def in_two_processes(here, folder):
    """The curve of one process, of the same updates."""
    began = time.monotonic()
    before = here.curves()
    for name in EXPERIMENTS:
        here.edit(lambda params, name=name: params["experiments"][name]["training"].update(SHARED))
    here.edit(lambda params: params["backbones"]["decoder"]["pretraining"].update(SHARED))
    here.run("dvc", "repro", *(f"train@{name}" for name in EXPERIMENTS))
    held(f"processes 2: the losses of one process within {_apart(here, before)}", began)
    began = time.monotonic()
    (port,) = slurm.free_ports(1)
    node = [
        *("torchrun", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"),
        *("--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1"),
        *("-m", "stages.train", "ner-encoder"),
    ]
    nodes = [here.start(*node), here.start(*node)]
    said = [process.communicate(timeout=PATIENCE)[0] for process in nodes]
    assert [process.returncode for process in nodes] == [0, 0], said
    here.run("dvc", "commit", "--force", KILLED)
    assert "up to date" in here.run("dvc", "status", KILLED)
    held(f"torchrun on 2 nodes: the losses of one process within {_apart(here, before)}", began)


def _apart(project, before):
    """How far losses are from what they were, at most, as a share of them."""
    after = project.curves()
    assert before.keys() == after.keys()
    apart = {name: abs(loss - before[name]) / before[name] for name, loss in after.items()}
    worst = max(apart, key=apart.__getitem__)
    assert apart[worst] < 1e-3, (worst, apart[worst])
    return f"{apart[worst]:.1e}"


def sweeps(here, folder):
    """A grid through Snakemake, and by DVC's queue."""
    began = time.monotonic()
    here.run(
        *("wxb", "new", "sweep", "rates", "--like", "ner-encoder", "--seeds", "1,2"),
        *("--set", "training.learning_rate=0.002,0.02", "--set", "training.epochs=2"),
    )
    here.run("snakemake", "--cores", "2", "rates")
    study = json.loads((here.folder / "reports/studies/rates.json").read_text())
    assert (study["seeds"], len(study["systems"])) == ([1, 2], 2)
    held("wxb new sweep, snakemake --cores 2 rates: 2 settings, 2 seeds, one paired test", began)
    began = time.monotonic()
    here.commit("a sweep")
    grid = "experiments.ner-encoder.training.learning_rate=0.001,0.004"
    here.run("dvc", "exp", "run", "--queue", "--set-param", grid, "evaluate@ner-encoder")
    here.run("dvc", "exp", "run", "--run-all")
    shown = here.run("dvc", "exp", "show", "--json")
    assert shown.count('"state": "success"') == 2, shown
    held("dvc exp run --queue, dvc exp run --run-all: 2 settings", began)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is taken down
    folder = Path(tempfile.mkdtemp(prefix="wxb-cluster-"))
    try:
        began = time.monotonic()
        here = Tiny(folder / "here")
        here.run("snakemake", "--cores", "2", *ON_LOGIN_NODE)
        through_slurm = here.copy(folder / "through-slurm")
        here.run("snakemake", "--cores", "2", "ner")
        held("snakemake --cores 2 ner, here", began)
        try:
            on_slurm(here, through_slurm)
        except slurm.NotUpError as error:
            print(f"skipped: {error}", flush=True)
        on_storage(here, folder)
        in_two_processes(here, folder)
        sweeps(here, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
