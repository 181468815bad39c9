"""The DAG of dvc.yaml, run in parallel: `snakemake --cores 2`, or one study or lesson: `... NAME`.

One rule per stage. Snakemake orders the jobs and each hands over to DVC, which runs the
stage, restores it or says that it did not change, exactly as `dvc repro` would.
"""

import shlex
import sys
from pathlib import Path

from wxb.project.engines import (
    REPRO,
    PlanError,
    Quiet,
    lay_stamps,
    plan,
    prepare,
    targets,
)
from wxb.params import ParamsError, load

try:
    params = load()
    if not workflow.output_settings.dryrun:
        prepare()
    stages = plan()
except (ParamsError, PlanError) as error:
    raise WorkflowError(str(error)) from None

# Outside the project and for this run only: planning changes nothing, a dry run neither.
stamps = workflow.snakemake_tmp_dir / "stamps"
lay_stamps(stages, stamps)
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
        handover: True
        resources:
            dvc=1,  # A hand-over that claims nothing is given all cores.
        params:
            repro=[*REPRO, stage.name],
        message:
            f"dvc repro --single-item {stage.name}"
        shell:
            "{params.repro:q} && touch {output:q}"
