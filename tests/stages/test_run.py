import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch

import stages
from wxb.errors import WxbError
from wxb.params import load

ROOT = Path(__file__).parents[2]
TOY = """
import os, signal, subprocess, sys, time
from stages import run
from pathlib import Path
from wxb.errors import WxbError
from wxb.files import publish
from wxb.progress import Progress

def wait():
    deadline = time.monotonic() + 20
    with open("events", "a") as events:
        print("begin", file=events, flush=True)
        while not Path("go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        print("end", file=events)

def leave_children():
    run = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    forked = os.fork()
    if forked == 0:
        time.sleep(60)
        os._exit(0)
    Path("children").write_text(f"{run.pid} {forked}")
    os.kill(os.getpid(), signal.SIGKILL)

def main(params, name):
    if name == "slow":
        return wait()
    if name == "parent" and not Path("children").exists():
        leave_children()
    print("to standard output")
    print("to standard error", file=sys.stderr)
    os.system("echo from a child")
    Progress("toy@" + name, 2).at(2)
    with publish("out") as (draft,):
        draft.write_text(os.environ["OMP_NUM_THREADS"])
        if name == "wrong":
            raise WxbError("found this; expected that; do so")
        if name == "broken":
            raise ZeroDivisionError("a defect")
        if name == "stopped":
            raise KeyboardInterrupt
        if name == "talkative":
            print(*range(100), sep="\\n")
            raise WxbError("enough")

run("toy", main, "A toy.")
"""
POOLS = ["OMP", "MKL", "OPENBLAS", "RAYON"]


@pytest.fixture
def project(tmp_path):
    """A project with the committed parameters, a toy stage and a corpus of its own."""
    params = (ROOT / "params.yaml").read_text(encoding="utf-8")
    params = params.replace("threads: 1 ", "threads: 3 ")
    (tmp_path / "params.yaml").write_text(params, encoding="utf-8")
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    return tmp_path


@contextmanager
def started(project, *arguments, **options):
    """A process, killed at the end at the latest."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}"},
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def events(project, count):
    """The first events that the toy has noted, when there are as many."""
    deadline = time.monotonic() + 60
    path = project / "events"
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    return path.read_text().splitlines()


def python(project, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_output_goes_to_the_log_and_progress_to_the_terminal(project):
    done = python(project, "toy.py", "good")
    assert done.returncode == 0
    assert done.stdout == ""
    progress, last = done.stderr.splitlines()
    assert progress.startswith("toy@good: 100%")
    assert last.startswith("toy@good: done in ")
    log = (project / "logs/toy@good.log").read_text()
    assert sorted(log.splitlines()) == ["from a child", "to standard error", "to standard output"]
    assert (project / "out").exists()


def test_the_cost_is_kept_apart(project):
    python(project, "toy.py", "good")
    cost = json.loads((project / "reports/cost/toy/good.json").read_text())
    assert sorted(cost)[:3] == ["cpu", "device", "finished"]
    assert cost["seconds"] >= 0
    assert 10 < cost["peak_memory_mib"] < 10_000
    assert cost["finished"].endswith("+00:00")
    assert cost["device"] == f"{cost['cpu']}, 3 CPU thread(s)"


def test_the_cost_names_the_instruction_set_where_torch_computes():
    cost = stages._cost(1.0)
    assert cost["capability"] == torch.backends.cpu.get_cpu_capability()
    assert cost["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("name", "code", "message", "trace"),
    [
        ("wrong", 1, "WxbError: found this; expected that; do so", False),
        ("broken", 1, "ZeroDivisionError: a defect", True),
    ],
)
def test_a_failure_is_told_and_leaves_only_the_log(project, name, code, message, trace):
    failed = python(project, "toy.py", name)
    log = (project / f"logs/toy@{name}.log").read_text()
    assert failed.returncode == code
    assert f"toy@{name} failed. The last lines of logs/toy@{name}.log:" in failed.stderr
    assert f"  {message}" in failed.stderr
    assert f"Run it again with: dvc repro --single-item toy@{name}" in failed.stderr
    assert ("Traceback" in log) == trace
    assert message in log
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml", "toy.py"]


def test_an_interruption_is_told_in_a_line(project):
    stopped = python(project, "toy.py", "stopped")
    assert stopped.returncode == 130
    *_, last = stopped.stderr.splitlines()
    assert last == "toy@stopped: interrupted; the same command begins it again"
    log = (project / "logs/toy@stopped.log").read_text()
    assert log.endswith("\ninterrupted\n")
    assert "Traceback" not in log + stopped.stderr
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml", "toy.py"]

    (project / ".wxb/checkpoints/toy@stopped-01ab/checkpoint-20").mkdir(parents=True)
    told = python(project, "toy.py", "stopped").stderr
    assert "interrupted; the same command goes on from its last checkpoint" in told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_group_ends_a_stage_without_a_trace(project, number, code):
    with started(project, "toy.py", "slow", start_new_session=True) as stage:
        events(project, 1)
        os.killpg(stage.pid, number)
        assert stage.wait() == code
        told = stage.stderr.read()
    assert told == "toy@slow: interrupted; the same command begins it again\n"


def test_a_stage_can_be_stopped_while_it_imports(project):
    (project / "stages").mkdir()
    shutil.copy(ROOT / "stages/__init__.py", project / "stages")
    code = "import pathlib, time; pathlib.Path('events').write_text('begin'); time.sleep(60)"
    (project / "stages/heavy.py").write_text(code)
    with started(project, "-m", "stages.heavy", "one") as stage:
        events(project, 1)
        stage.send_signal(signal.SIGINT)
        assert stage.wait() == 130
        told = stage.stderr.read()
    assert told == "heavy@one: interrupted; the same command begins it again\n"


def test_only_the_last_lines_of_a_long_log_are_shown(project):
    lines = python(project, "toy.py", "talkative").stderr.splitlines()
    assert "  99" in lines
    assert "  50" not in lines
    assert "enough" in lines[-2]


def test_threads_of_params_are_obeyed(project):
    names = [f"{pool}_NUM_THREADS" for pool in POOLS]
    code = f"import os, stages; print([os.environ[n] for n in {names}], end='')"
    assert python(project, "-c", code).stdout == str(["3"] * len(POOLS))
    code = "import stages, os; print(os.environ['TOKENIZERS_PARALLELISM'], end='')"
    assert python(project, "-c", code).stdout == "true"


AVX2 = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
KERNELS = """
import stages, numpy, torch
from numpy._core._multiarray_umath import __cpu_features__
a = torch.randn(9, 9)
a @ a
print(torch.backends.cpu.get_cpu_capability(), __cpu_features__["X86_V4"])
torch.nn.functional.conv2d(torch.randn(8, 32, 8, 8), torch.randn(64, 32, 3, 3))
"""


@pytest.mark.skipif(not AVX2, reason="this CPU has no AVX2")
def test_portable_holds_every_library_to_avx2(project, monkeypatch):
    path = project / "params.yaml"
    path.write_text(path.read_text().replace("portable: false", "portable: true"))
    for library in ("MKL", "ONEDNN"):
        monkeypatch.setenv(f"{library}_VERBOSE", "1")
    told = python(project, "-W", "ignore", "-c", KERNELS)
    assert "AVX2 False\n" in told.stdout
    if torch.backends.mkl.is_available():
        assert "CNR:COMPATIBLE" in told.stdout
    assert "isa:Intel AVX2\n" in told.stdout
    assert "avx512" not in told.stdout


def test_portable_is_refused_where_torch_cannot_obey(project, monkeypatch):
    params = load(project / "params.yaml")
    portable = params.model_copy(update={"portable": True})
    for found, refused in {"AVX2": False, "DEFAULT": True, "AVX512": True}.items():
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda found=found: found)
        stages._check_kernels(params)
        with pytest.raises(WxbError, match="portable: false") if refused else nullcontext():
            stages._check_kernels(portable)


def test_parameters_are_checked_before_the_work(project):
    (project / "params.yaml").write_text("sed: 1\n")
    failed = python(project, "toy.py", "good")
    assert failed.returncode == 1
    assert "sed: unknown key; did you mean 'seed'?" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (project / "out").exists()


@pytest.mark.parametrize("stage", ["download", "preprocess"])
def test_an_unknown_name_is_told_with_the_nearest(project, stage):
    failed = python(project, "-m", f"stages.{stage}", "pij")
    assert failed.returncode == 1
    assert f"The last lines of logs/{stage}@pij.log:" in failed.stderr
    assert "corpora has no 'pij'; did you mean 'pii'? (there is: pii)" in failed.stderr
    assert f"dvc repro --single-item {stage}@pij" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml", "toy.py"]


def test_download_then_preprocess_a_corpus_of_ones_own(project):
    params = (project / "params.yaml").read_text(encoding="utf-8")
    generate = params[params.index("    generate:") : params.index("    hub:")]
    params = params.replace(generate, "").replace("path: wxb/tasks/ner/pii ", "path: mine.jsonl ")
    further = params[params.index("      further:") : params.index("    augment:")]
    params = params.replace(further, "")
    (project / "params.yaml").write_text(params, encoding="utf-8")
    lines = [{"input": f"text {chr(945 + i)}", "spans": [], "template": i} for i in range(40)]
    mine = project / "mine.jsonl"
    mine.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    missing = python(project, "-m", "stages.preprocess", "pii")
    assert missing.returncode == 1
    assert "data/raw/pii: found nothing; expected a file ending in .json" in missing.stderr

    downloaded = python(project, "-m", "stages.download", "pii")
    assert downloaded.returncode == 0, downloaded.stderr
    assert (project / "data/raw/pii/mine.jsonl").read_bytes() == mine.read_bytes()

    cleaned = python(project, "-m", "stages.preprocess", "pii")
    assert cleaned.returncode == 0, cleaned.stderr
    profile = json.loads((project / "data/clean/pii/profile.json").read_text())
    assert profile["records"] == {"raw": 40, "rejected": 0, "train": 28, "valid": 4, "test": 8}
    assert not [p for p in project.rglob("*") if p.name.endswith(".partial")]


def waits_for(process):
    return (
        f"toy@slow: waiting for process {process.pid}, "
        "which runs the same stage (was its engine stopped?)\n"
    )


def test_processes_of_a_stage_take_turns(project):
    with started(project, "toy.py", "slow") as first:
        events(project, 1)
        log = project / "logs/toy@slow.log"
        opened = log.stat().st_mtime_ns
        with started(project, "toy.py", "slow") as second:
            assert second.stderr.readline() == waits_for(first)
            assert python(project, "toy.py", "good").returncode == 0, "another stage need not wait"
            assert events(project, 1) == ["begin"]
            assert log.stat().st_mtime_ns == opened
            (project / "go").touch()
            assert first.wait() == second.wait() == 0
    assert events(project, 4) == ["begin", "end", "begin", "end"]


def test_a_stage_that_waits_can_be_stopped(project):
    with started(project, "toy.py", "slow"):
        events(project, 1)
        with started(project, "toy.py", "slow") as second:
            assert "waiting" in second.stderr.readline()
            second.send_signal(signal.SIGINT)
            assert second.wait() == 130
            assert second.stderr.read() == ""
    assert events(project, 1) == ["begin"]


def test_a_stage_goes_on_when_the_other_is_killed(project):
    with started(project, "toy.py", "slow") as first:
        events(project, 1)
        with started(project, "toy.py", "slow") as second:
            assert second.stderr.readline() == waits_for(first)
            first.kill()
            assert events(project, 2) == ["begin", "begin"]
            (project / "go").touch()
            assert second.wait() == 0


def test_what_a_killed_stage_has_started_keeps_none_waiting(project):
    with started(project, "toy.py", "parent") as killed:
        assert killed.wait() == -signal.SIGKILL
    children = [int(pid) for pid in (project / "children").read_text().split()]
    try:
        again = python(project, "toy.py", "parent")
        assert again.returncode == 0
        assert "waiting" not in again.stderr
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # fails if it has ended, and the test meant nothing


def test_each_job_has_gpus_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(stages.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b,GPU-c")

    def shown(count):
        """What a job that needs so many is shown, while it runs."""
        os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b,GPU-c"
        return stages._own_gpus(count)

    with shown(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with shown(2):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-c"
            with shown(1):  # more jobs than GPUs share
                assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with shown(1):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with stages._own_gpus(1):  # a CPU is asked for
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
