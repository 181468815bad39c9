"""Plans and stamps, which Snakemake reads instead of calling DVC."""

import io
import re
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from dvc.cli import parse_args as dvc_arguments
from hypothesis import given
from hypothesis import strategies as st
from snakemake.cli import parse_args as snakemake_arguments

from wxb.project.engines import (
    UNSUPPORTED,
    PlanError,
    Stage,
    is_read_only,
    page_stages,
    require_supported,
    write_stamps,
)


def test_a_lesson_is_a_target_too() -> None:
    stages = [Stage("train@a", (), is_due=True), Stage("lesson@gates", (), is_due=False)]
    assert page_stages(stages) == {"gates": "lesson@gates"}


@given(due=st.lists(st.booleans(), max_size=12))
def test_stages_that_are_not_due_have_stamps_in_order(
    due: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stamps")
    stages = [Stage(f"verb@{index}", (), is_due) for index, is_due in enumerate(due)]
    write_stamps(stages, folder)
    stamps = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [stamp.name for stamp in stamps] == [s.name for s in stages if not s.is_due]


ROWS = re.findall(
    r"^\| (`(?:snakemake|dvc) -.*?|`dvc [rf].*?) \| (\w+)(.*) \|$",
    (Path(__file__).parents[2] / "docs/pipeline.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
FLAGS = [(flag, *rest) for flags, *rest in ROWS for flag in re.findall("`(.*?)`", flags)]


@pytest.mark.parametrize(("command", "effect", "rest"), FLAGS)
def test_each_flag_of_the_documentation_does_what_its_row_says(command, effect, rest):
    program, *arguments = command.split()
    if program == "dvc":
        assert dvc_arguments([*arguments, "STAGE"]).func
        return
    with redirect_stderr(io.StringIO()):
        _, parsed = snakemake_arguments(["--cores", "2", *arguments])
    config = [value.partition("=")[0] for value in parsed.config or ()]
    if effect == "refused":
        with pytest.raises(PlanError) as error:
            require_supported(parsed, config)
        assert re.search("`(.*?)`", rest)[1] in str(error.value)
    else:
        require_supported(parsed, [*config, "handover"])
    assert is_read_only(parsed) == (effect == "reads")


def test_the_table_has_every_flag_that_is_refused():
    refused = {command.split()[1] for command, effect, _ in FLAGS if effect == "refused"}
    assert refused == {f"--{name.replace('_', '-')}" for name in UNSUPPORTED}
