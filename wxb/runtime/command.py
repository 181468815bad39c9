"""The command line of a stage: `python -m stages.<verb> <name>`."""

import argparse
import datetime
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

import psutil  # type: ignore[import-untyped]

from wxb.core import paths
from wxb.core.errors import WxbError, error_line, storage_error
from wxb.core.files import publish, publish_checks, require_valid_links, write_json
from wxb.core.params import Params, load_for_stage
from wxb.core.progress import Progress
from wxb.runtime import engine, gpus, inputs, kernels, locks, signals

ON_GPU = ("lesson", "pretrain", "train", "evaluate")  # verbs of stages that use a GPU

# A stage may return numbers to add to its cost.
Main = Callable[[Params, str], Mapping[str, float] | None]


def run(verb: str, main: Main, doc: str | None) -> None:
    """Run a stage with params.yaml and the block name on the command line.

    Checks the parameters, waits for other processes that run the stage, and reserves GPUs. Writes
    output to `logs/<verb>@<name>.log` and the cost to `reports/cost`. Publishes nothing if an input
    changes meanwhile, and ends with the engine that runs it. Exits with 1 on failure, 130 on
    Ctrl-C, 143 on SIGTERM, else 0 without exit handlers. If several processes train together, all
    but the first only call `main`, discard standard output, and end with their parent.
    """
    if not signals.IS_FIRST_PROCESS:
        if first := psutil.Process().parent():
            engine.terminate_after(first)
        with Path(os.devnull).open("w", encoding="utf-8") as Progress.console:
            os.dup2(Progress.console.fileno(), 1)
            main(load_for_stage(), sys.argv[1])
        return
    parser = argparse.ArgumentParser(prog=f"python -m stages.{verb}", description=doc)
    parser.add_argument("name", help="the block of params.yaml to run for")
    name = parser.parse_args().name
    stage = f"{verb}@{name}"
    log = paths.log(stage)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.open("a").close()  # another process may be writing it: its time stays
    except OSError as error:
        print(f"{stage}: {storage_error(error) or error_line(error)}", file=sys.stderr)
        sys.exit(1)
    with locks.hold(stage), redirect_to(log) as console:
        Progress.stage = stage
        try:
            signals.raise_interrupts()
            cost = _run_main(verb, name, main)
            sys.stdout.flush()
        except KeyboardInterrupt as error:
            signals.ignore_interrupts()
            print("interrupted", flush=True)
            print(f"{stage}: {signals.INTERRUPTED}", file=console)
            sys.exit(143 if isinstance(error, signals.Terminated) else 130)
        except Exception as error:
            _report_failure(stage, error, console)
            sys.exit(1)
        print(f"{stage}: done in {cost['seconds']:.1f} s", file=console, flush=True)
        os._exit(0)  # ending torch takes a second, in which an input can change before DVC reads it


def _run_main(verb: str, name: str, main: Main) -> Mapping[str, object]:
    """Run `main` with checks, on GPUs if ON_GPU; write and return its cost and what it returns."""
    start, stage = time.monotonic(), f"{verb}@{name}"
    folders = (paths.RAW, paths.CLEAN, paths.MODELS)
    require_valid_links([paths.page(name), *(folder / name for folder in folders)])
    process, before = engine.find(stage), inputs.read(stage)
    if process:
        engine.terminate_after(process)
        publish_checks.append(partial(engine.require_running, stage, process))
    publish_checks.append(partial(inputs.require_unchanged, stage, before))
    params = load_for_stage()
    kernels.require_portable(params)
    with gpus.reserve(params.processes(stage)) if verb in ON_GPU else nullcontext():
        numbers = main(params, name)
    cost = {**process_cost(time.monotonic() - start), **(numbers or {})}
    with publish(paths.cost(verb, name)) as (draft,):
        write_json(draft, cost)
    return cost


def process_cost(seconds: float) -> dict[str, object]:
    """The cost of this process, which took `seconds`: peak memory, end (UTC), CPU and device.

    It is not reproducible, so it is no part of the results. If torch is imported, also its version
    and the CPU's capability. If the process used a GPU, `device` is the name of the GPU instead of
    the CPU's, and its peak memory is added.
    """
    model, threads = kernels.cpu_model(), os.environ.get("OMP_NUM_THREADS")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; on macOS bytes
    cost = {
        "seconds": round(seconds, 2),
        "peak_memory_mib": peak // (2**20 if sys.platform == "darwin" else 2**10),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": f"{model}, {threads} CPU thread(s)" if threads else model,
        "cpu": model,
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        cost["capability"] = torch.backends.cpu.get_cpu_capability()  # such as AVX2 or AVX512
        cost["torch"] = torch.__version__
        if torch.cuda.is_initialized():
            cost["device"] = torch.cuda.get_device_name()
            cost["peak_gpu_memory_mib"] = torch.cuda.max_memory_allocated() // 2**20
    return cost


def _report_failure(stage: str, error: Exception, console: TextIO) -> None:
    """Print the error to the log, and the end of the log or a fault of the disk to the terminal."""
    fault, log = storage_error(error), paths.log(stage)
    with suppress(OSError):  # the log may be on the full disk
        if not isinstance(error, WxbError) and not fault:
            traceback.print_exc()
        print(f"{type(error).__name__}: {error}", flush=True)
    if fault:
        print(f"{stage}: {fault}", file=console)
        return
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    print(f"\n{stage} failed. The last lines of {log}:", file=console)
    print(*(f"  {line}" for line in lines[-12:]), sep="\n", file=console)
    print(f"Run it again with: dvc repro --single-item {stage}", file=console)


@contextmanager
def redirect_to(log: Path) -> Iterator[TextIO]:
    """Redirect standard output and error, also of C libraries, to a new log until the process ends.

    Yields the former standard error, to which Progress prints; it closes with the block.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with open(terminal, "w", encoding="utf-8", closefd=True) as console:  # noqa: PTH123
        Progress.console = console
        yield console
