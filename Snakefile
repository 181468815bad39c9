"""The DAG of dvc.yaml, run in parallel: `snakemake --cores 2`, or one study or lesson: `... NAME`.

One rule per stage. Snakemake orders the jobs and each hands over to DVC, which runs the
stage, restores it or says that it did not change, exactly as `dvc repro` would.
"""

import os
import shlex
import sys
from pathlib import Path

from wxb.project.engines import (
    REPRO,
    RUN,
    PlanError,
    Quiet,
    folder_of_run,
    lay_stamps,
    plan,
    prepare,
    read_plan,
    targets,
    write_plan,
)
from wxb.core.params import ParamsError, load

try:
    params = load()
    if workflow.is_main_process:
        if not workflow.output_settings.dryrun:
            prepare()
        # For this run only: planning changes nothing, a dry run neither.
        held = folder_of_run("look" if workflow.output_settings.dryrun else "run")
        os.environ[RUN] = held.name
    run = Path(os.environ[RUN])
    stamps, plan_of_run = run / "stamps", run / "plan.json"
    if workflow.is_main_process:
        stages = plan()
        lay_stamps(stages, stamps)
        write_plan(stages, plan_of_run)
    else:  # a job on a node of a cluster
        stages = read_plan(plan_of_run)
except (ParamsError, PlanError) as error:
    raise WorkflowError(str(error)) from None

logger.addFilter(Quiet())

# What takes longest would leave a core idle if it began last.
slow = {name for name, block in params.experiments.items() if block.slow}

# `python` in dvc.yaml is the one that runs Snakemake, its environment activated or not.
shell.prefix(f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")

# What `snakemake --report` shows of each study and lesson.
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
        # Snakemake keeps what is handed over on its own machine, which the profile of a cluster forbids.
        handover: config.get("handover", True)
        threads: params.threads * params.processes(stage.name)
        resources:
            **params.asked(stage.name),
            dvc=1,  # A hand-over that claims nothing is given all cores.
        params:
            repro=[*REPRO, stage.name],
        message:
            f"dvc repro --single-item {stage.name}"
        shell:
            "{params.repro:q} && touch {output:q}"
