import pytest

from stages import tokenizer
from tests import demo
from wxb.core.errors import WxbError
from wxb.core.params import check


def test_an_adapter_without_a_tokenizer_is_named(cwd):
    (cwd / "adapter").mkdir()
    (cwd / "adapter/adapter_config.json").write_text("{}")
    content = demo.content()
    content["backbones"]["x"] = {"corpus": "pii", "objective": "none", "checkpoint": "adapter"}
    with pytest.raises(WxbError, match="found an adapter; `wxb merge`"):
        tokenizer.main(check(content), "x")
