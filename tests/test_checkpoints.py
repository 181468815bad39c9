"""Where unfinished training lives: named after what decides the result, and never half read."""

import json
from itertools import combinations

import pytest

from wxb.checkpoints import FOLDER, folder, last_complete
from wxb.params import Head


@pytest.fixture
def inputs(tmp_path):
    def make(place, text="a"):
        data = tmp_path / place / "data"
        data.mkdir(parents=True)
        (data / "train.arrow").write_text(text)
        (data / "nested").mkdir()
        (data / "nested" / "types.json").write_text("[]")
        single = tmp_path / place / "single.json"
        single.write_text("{}")
        return [data, single]

    return make


def test_the_name_does_not_depend_on_place_or_order(inputs):
    here, there = inputs("here"), inputs("there")
    name = folder("train@x", [Head(projection=8), 1, 1], here)
    assert name == folder("train@x", [Head(projection=8), 1, 1], there)
    assert name == folder("train@x", [Head(projection=8), 1, 1], here[::-1])
    assert name.parent == FOLDER
    assert name.name.startswith("train@x-")


def test_the_name_depends_on_settings_and_content(inputs):
    head = Head(projection=8)
    here, other, renamed = inputs("here"), inputs("other", text="b"), inputs("renamed")
    (renamed[0] / "train.arrow").rename(renamed[0] / "valid.arrow")
    names = [
        folder("train@x", [head, 1, 12], here),
        folder("train@x", [head, 11, 2], here),  # the same digits
        folder("train@x", [head, 2, 1], here),
        folder("train@x", [Head(projection=9), 1, 12], here),
        folder("train@x", [head, 1, 12], other),
        folder("train@x", [head, 1, 12], renamed),
        folder("train@x", [head, 1, 12], here[:1]),
        folder("train@y", [head, 1, 12], here),
    ]
    assert all(a != b for a, b in combinations(names, 2))


def test_the_name_depends_on_the_code(inputs, tmp_path, monkeypatch):
    import wxb.align

    here = inputs("here")
    before = folder("train@x", [1], here)
    changed = tmp_path / "align.py"
    changed.write_text("# another way to align")
    monkeypatch.setattr(wxb.align, "__file__", str(changed))
    assert folder("train@x", [1], here) != before


def checkpoint(folder, step, state):
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    if state is not None:
        (path / "trainer_state.json").write_text(state)
    return path


def test_the_newest_is_newest_by_number(tmp_path):
    state = json.dumps({"global_step": 1})
    newest = [checkpoint(tmp_path, step, state) for step in (900, 1000, 99)][1]
    assert last_complete(tmp_path) == newest


@pytest.mark.parametrize("state", [None, "", '{"global_step": 3, "log_his'])
def test_a_cut_off_checkpoint_is_passed_over(tmp_path, state):
    complete = checkpoint(tmp_path, 2, "{}")
    checkpoint(tmp_path, 3, state)
    assert last_complete(tmp_path) == complete


def test_none_where_there_is_none(tmp_path):
    assert last_complete(tmp_path / "missing") is None
    checkpoint(tmp_path, 3, None)
    assert last_complete(tmp_path) is None
