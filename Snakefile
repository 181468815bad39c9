"""Run the DAG of dvc.yaml in parallel: `snakemake --cores 2`, or with a NAME one study or lesson.

There is one rule per stage. Snakemake orders the jobs. Each job calls DVC, which runs the stage,
restores it from the cache, or skips it, exactly as `dvc repro` does.
"""

import atexit
import gc
import os
import shlex
import sys
from pathlib import Path

from wxb.project.engines import (
    REPRO,
    RUN,
    PlanError,
    is_helpful,
    plan,
    prepare,
    read_plan,
    run_folder,
    targets,
    write_plan,
    write_stamps,
)
from wxb.core.params import ParamsError, load

# Searching imported modules for garbage, also at the exit, takes a quarter of a dry run.
gc.freeze()
atexit.register(gc.freeze)

try:
    params = load()
    if workflow.is_main_process:
        if not workflow.output_settings.dryrun:
            prepare()
        # The folder is removed when this variable goes, at the end of the run.
        folder = run_folder("look" if workflow.output_settings.dryrun else "run")
        os.environ[RUN] = folder.name
    run = Path(os.environ[RUN])
    stamps, plan_path = run / "stamps", run / "plan.json"
    if workflow.is_main_process:
        stages = plan()
        write_stamps(stages, stamps)
        write_plan(stages, plan_path)
    else:  # a job on a node of a cluster
        stages = read_plan(plan_path)
except (ParamsError, PlanError) as error:
    raise WorkflowError(str(error)) from None

logger.addFilter(is_helpful)

# The slowest experiments start first, so that no core is idle at the end.
slow = {name for name, block in params.experiments.items() if block.is_slow}

# Stages use the `python` that runs Snakemake, even if its environment is not activated.
shell.prefix(f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")

# The files that `snakemake --report` shows of each study and lesson.
pages = {}
for name, target in targets(stages).items():
    pages[name] = [report(file, category=name) for file in target.files]


rule all:
    default_target: True
    input:
        [stamps / stage.name for stage in stages],
        list(pages.values()),
    message:
        "Every stage is up to date."


for name, target in targets(stages).items():

    rule:
        name:
            name
        input:
            stamps / target.stage,
            pages[name],
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
            stage.log,
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
