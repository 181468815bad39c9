"""The verbs of the pipeline, one module each: `python -m stages.<verb> <name>`.

A stage module defines a pure function and hands a one-argument `main(name)` to `run`, which gives
every stage the same manners: parameters are checked first, output goes to `logs/<verb>@<name>.log`,
failures say what to do, and what the run cost is kept apart from what must be reproducible. Ctrl-C
ends it in one line, without a traceback. As an engine that is killed may leave its stage running, a
second process of the same stage waits.
"""

from __future__ import annotations

import argparse
import datetime
import getpass
import logging
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

from filelock import FileLock, Timeout

from wxb import paths
from wxb.errors import WxbError
from wxb.files import publish, write_json
from wxb.params import Params, load
from wxb.progress import Progress

LINES_SHOWN = 12
# Each library picks its kernels by the CPU. These hold it to those of every x86-64 CPU with AVX2.
# MKL has a branch for AVX2 too, but takes no notice of it on AMD's CPUs (MKL_VERBOSE=1 tells).
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
LOCKS = Path(".wxb/locks")

# On import it tells every stage of a kernel that could be had besides.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)


def _prepare() -> None:
    """Obey `threads` and `portable` of params.yaml in every library that computes.

    They read these variables when they are imported, which the stage modules do after this package.
    """
    try:
        params = load()
    except WxbError:
        return  # `run` reports it
    threads = params.threads
    if params.portable:
        os.environ.update(PORTABLE)
    for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
        os.environ[f"{pool}_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = str(threads > 1).lower()
    # Nothing here is compiled, and the compiler that bitsandbytes loads takes each stage a second.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


_prepare()


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a stage as Ctrl-C does."""


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


def _leave(number: int, frame: object) -> NoReturn:
    """Ctrl-C while a stage imports what it needs: imports may swallow an exception, or tell it."""
    module, *name = sys.orig_argv[2:]
    stage = "@".join([module.removeprefix("stages."), *name])
    os.write(2, f"{stage}: interrupted; the same command begins it again\n".encode())
    os._exit(130)


def _is_stage() -> bool:
    return sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2].startswith("stages.")


# Of several processes that train together, the first tells and publishes; with it the others end.
FIRST = os.environ.get("RANK", "0") == "0"

if not FIRST:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
elif _is_stage() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)


# A stage may tell what else it took: numbers by their names, which join its cost.
Main = Callable[[Params, str], Mapping[str, float] | None]


def run(verb: str, main: Main, doc: str | None) -> None:
    """The command line of a stage: `python -m stages.<verb> <name>`.

    Exits with 1 on failure, with 130 if it is interrupted, and with 143 on SIGTERM.
    """
    if not FIRST:
        with Path(os.devnull).open("w", encoding="utf-8") as Progress.console:
            os.dup2(Progress.console.fileno(), 1)
            main(load(), sys.argv[1])
        return
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog=f"python -m stages.{verb}", description=doc)
    parser.add_argument("name", help="the block of params.yaml to run for")
    name = parser.parse_args().name
    stage = f"{verb}@{name}"
    log = paths.log(stage)
    with _alone(stage), _diverted_to(log) as console:
        started = time.monotonic()
        try:
            params = load()
            _check_kernels(params)
            with _own_gpus(params.processes(stage)):
                more = main(params, name)
            cost = {**_cost(time.monotonic() - started), **(more or {})}
            with publish(paths.cost(verb, name)) as (draft,):
                write_json(draft, cost)
        except KeyboardInterrupt as error:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # once is enough
            print("interrupted", flush=True)
            print(f"{stage}: interrupted; {_next(stage)}", file=console)
            sys.exit(143 if isinstance(error, Terminated) else 130)
        except Exception as error:
            if not isinstance(error, WxbError):
                traceback.print_exc()
            print(f"{type(error).__name__}: {error}", flush=True)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES_SHOWN:]
            print(
                f"\n{stage} failed. The last lines of {log}:",
                *(f"  {line}" for line in lines),
                f"Run it again with: dvc repro --single-item {stage}",
                sep="\n",
                file=console,
            )
            sys.exit(1)
        print(f"{stage}: done in {cost['seconds']:.1f} s", file=console)


def _next(stage: str) -> str:
    """What comes of running an interrupted stage again."""
    from wxb.training import checkpoints

    if checkpoints.kept(stage):
        return "the same command goes on from its last checkpoint"
    return "the same command begins it again"


@contextmanager
def _alone(stage: str) -> Iterator[None]:
    """Wait until no other process runs the stage, and keep others waiting meanwhile.

    The system gives the lock free when its holder ends, however it ends; children don't inherit it.
    """
    path = LOCKS / f"{stage}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        try:
            print(
                f"{stage}: waiting for process {path.read_text(encoding='utf-8')}, "
                "which runs the same stage (was its engine stopped?)",
                file=sys.stderr,
                flush=True,
            )
            held = lock.acquire(poll_interval=0.5)
        except KeyboardInterrupt:
            sys.exit(130)
    with held:
        path.write_text(str(os.getpid()), encoding="utf-8")
        yield


@contextmanager
def _own_gpus(count: int) -> Iterator[None]:
    """Show torch only so many of this machine's GPUs: those that no other stage uses, if there are.

    Where there are too few it shares: how many stages run at once is for the engine to say.
    """
    with ExitStack() as held:
        free: list[str] = []
        taken: list[str] = []
        for gpu in _gpus():
            path = Path(tempfile.gettempdir(), f"wxb-{getpass.getuser()}", f"{gpu}.lock")
            path.parent.mkdir(exist_ok=True)
            lock = FileLock(path, fallback_to_soft=False)
            try:
                if len(free) < count:
                    held.enter_context(lock.acquire(blocking=False))
                    free.append(gpu)
            except Timeout:
                taken.append(gpu)
        if free or taken:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join([*free, *taken][:count])
        yield


def _gpus() -> list[str]:
    """The GPUs that may be used here, by what CUDA calls them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [gpu.strip() for gpu in given.split(",") if gpu.strip()]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    asked = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()


@contextmanager
def _diverted_to(log: Path) -> Iterator[TextIO]:
    """Send all output, that of libraries included, to the log; progress stays on the terminal."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with open(terminal, "w", encoding="utf-8", closefd=True) as console:  # noqa: PTH123
        Progress.console = console
        yield console


def _check_kernels(params: Params) -> None:
    """Raise WxbError where `portable` is set and torch, if it computes, cannot obey."""
    torch = sys.modules.get("torch")
    found = torch.backends.cpu.get_cpu_capability() if torch is not None else "AVX2"
    if params.portable and found != "AVX2":
        raise WxbError(
            f"portable: found {_cpu()}, where torch computes with {found}; expected an x86-64 CPU"
            " with AVX2, as the same bytes are promised on those alone: set `portable: false` in"
            " params.yaml, and expect other last digits"
        )


def _cost(seconds: float) -> dict[str, object]:
    """What cannot be repeated: time, memory, date and machine, of this process."""
    cpu = _cpu()
    cost = {
        "seconds": round(seconds, 2),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": f"{cpu}, {os.environ.get('OMP_NUM_THREADS')} CPU thread(s)",
        "cpu": cpu,
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        cost["capability"] = torch.backends.cpu.get_cpu_capability()  # such as AVX2 or AVX512
        cost["torch"] = torch.__version__
        if torch.cuda.is_available():
            cost["device"] = torch.cuda.get_device_name()
            cost["peak_gpu_memory_mib"] = torch.cuda.max_memory_allocated() // 2**20
    return cost


def _cpu() -> str:
    """The model of this machine's CPU: bytes are promised on one kind only."""
    models = re.search(r"^model name\s*: (.+)$", _cpuinfo(), re.MULTILINE)
    return models[1] if models else platform.processor() or platform.machine()


def _cpuinfo() -> str:
    """What Linux tells of the CPU; nothing elsewhere."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8") if path.exists() else ""
