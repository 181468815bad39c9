"""Random edits, faults and runs of a project: only stages run that have to, with the same bytes."""

import pytest

from tests.project.integrity import trust


@pytest.mark.slow
def test_random_steps():
    trust.run_projects(4, derandomize=True)
