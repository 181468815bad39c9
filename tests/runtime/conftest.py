import pytest

from tests import demo
from tests.runtime.toy import TOY


@pytest.fixture
def project(tmp_path):
    """A project with the committed parameters, and a toy stage."""
    params = demo.TEXT.replace("threads: 1 ", "threads: 3 ")
    (tmp_path / "params.yaml").write_text(params, encoding="utf-8")
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    return tmp_path
