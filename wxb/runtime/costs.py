"""The cost of a stage. It is not reproducible, so it is no part of the results."""

import datetime
import os
import resource
import sys

from wxb.runtime.kernels import cpu_model


def process_cost(seconds: float) -> dict[str, object]:
    """The cost of this process, which took `seconds`: peak memory, end (UTC), CPU and device.

    If torch is imported, also its version and the CPU's capability. If the process used a GPU,
    `device` is the name of the GPU instead of the CPU's, and its peak memory is added.
    """
    model, threads = cpu_model(), os.environ.get("OMP_NUM_THREADS")
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
