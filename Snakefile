"""Run the DAG of dvc.yaml in parallel: `snakemake --cores 2`, or with a NAME one study or lesson.

There is one rule per stage. Snakemake orders the jobs. Each job calls DVC, which runs the stage,
restores it from the cache, or skips it, exactly as `dvc repro` does.
"""

import atexit
import gc
import io
import os
import re
import sys
from contextlib import redirect_stderr
from pathlib import Path

from snakemake.cli import parse_args

from wxb.project.engines import (
    REPRO,
    RUN,
    Stage,
    is_read_only,
    page_stages,
    plan,
    repair_and_run_check,
    require_supported,
    run_folder,
    use_own_python,
    write_stamps,
)
from wxb.core import paths
from wxb.core.errors import WxbError, did_you_mean, storage_error
from wxb.core.files import read_json, write_json
from wxb.core.params import load
from wxb.project.root import require_no_braces_or_conflicts

# Searching imported modules for garbage, also at the exit, takes a quarter of a dry run.
gc.freeze()
atexit.register(gc.freeze)

use_own_python()

try:
    require_no_braces_or_conflicts()
    params = load()
    if workflow.is_main_process:
        with redirect_stderr(io.StringIO()):  # it names the profile once more
            _, arguments = parse_args(sys.argv[1:])
        require_supported(arguments, config)
        if not is_read_only(arguments):
            repair_and_run_check()
        # The folder is removed when this variable goes, at the end of the run.
        folder = run_folder("read" if is_read_only(arguments) else "run")
        os.environ[RUN] = folder.name
    run = Path(os.environ[RUN])
    stamps, plan_path = run / "stamps", run / "plan.json"
    if workflow.is_main_process:
        stages = plan()
        known = {"all", *page_stages(stages), *(stage.name for stage in stages)}
        if unknown := {*(arguments.targets or ())} - known:
            name = min(unknown)
            raise WxbError(
                f"no target {name!r}{did_you_mean(name, known)}; expected studies, lessons or"
                " stages: `snakemake --list` lists them"
            )
        for stage in stages:
            for path in stage.absent:
                logger.warning(
                    f"{path} does not exist; {stage.name} does not run, and its data is kept"
                )
        write_stamps(stages, stamps)
        write_json(plan_path, stages)
    else:  # a job on a node of a cluster
        stages = [Stage(*fields) for fields in read_json(plan_path)]
except (WxbError, OSError) as error:
    raise WorkflowError(storage_error(error) or str(error)) from None

# Stamps are new, so Snakemake warns that it has no metadata of them.
logger.addFilter(
    lambda record: not re.search("issing (provenance/)?metadata", record.getMessage())
)

# The slowest experiments start first, so that no core is idle at the end.
slow = {name for name, block in params.experiments.items() if block.is_slow}


rule all:
    default_target: True
    input:
        [stamps / stage.name for stage in stages],
    message:
        "Every stage is up to date."


for name, stage in page_stages(stages).items():

    rule:
        name:
            name
        input:
            stamps / stage,
        message:
            f"{name} is up to date: reports/{name}.html"


for stage in stages:

    rule:
        name:
            stage.name
        input:
            [stamps / name for name in stage.upstream],
        output:
            stamps / stage.name,
        log:
            str(paths.log(stage.name)),
        priority: int(stage.name.partition("@")[2] in slow)
        # Handover jobs run on Snakemake's own machine; the profile of a cluster sets it to False.
        handover: config.get("handover", True)
        threads: params.threads * params.processes(stage.name)
        resources:
            **params.snakemake_resources(stage.name),
            dvc=1,  # A handover job without resources gets all cores.
        params:
            repro=[*REPRO, stage.name],
        message:
            f"dvc repro --single-item {stage.name}"
        shell:
            "{params.repro:q} && touch {output:q}"
