"""The stage that runs before all others."""

import pytest

from stages.check import BACKBONES, CHECKED, main
from tests.repository import edit, write


def test_the_output_is_the_same_for_all_valid_parameters(params):
    main()
    output = CHECKED.read_bytes()
    edit("params.yaml", "learning_rate: ", "learning_rate: 1")
    main()
    assert CHECKED.read_bytes() == output


def test_invalid_parameters_are_an_error_without_output(params):
    edit("params.yaml", "threads:", "thread:")
    with pytest.raises(SystemExit, match="did you mean 'threads'"):
        main()
    assert not CHECKED.exists()


def test_a_local_checkpoint_is_linked_so_that_dvc_hashes_its_files(cwd, params, monkeypatch):
    write("bert/model.safetensors", "")
    monkeypatch.setattr("wxb.core.compatibility.require", lambda *_: None)
    block = "  local: {corpus: pii, objective: none, checkpoint: bert}\n"
    edit("params.yaml", "backbones:\n", f"backbones:\n{block}")
    main()
    links = {path.name: path.resolve() for path in BACKBONES.iterdir() if path.is_symlink()}
    assert links == {"local": cwd / "bert"}
    sizes = {path.stat().st_size for path in BACKBONES.iterdir() if path.name != "local"}
    assert sizes == {0}
