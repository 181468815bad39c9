from pathlib import Path

import pytest
from ruamel.yaml import YAML

from wxb.project.profiles import switch

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("profile", ["chat", "ruozhiba", "full-chat"])
def test_a_profile_is_valid_and_can_be_removed(profile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    (tmp_path / "params").symlink_to(ROOT / "params")
    switch(profile)
    added = YAML(typ="safe").load(ROOT / f"params/{profile}.yaml")["studies"]
    assert {*added} < {*YAML(typ="safe").load(Path("params.yaml"))["studies"]}
    switch("demo")
    assert not {*added} & {*YAML(typ="safe").load(Path("params.yaml"))["studies"]}
