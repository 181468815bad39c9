"""Both tables are printed, with the stages in this process and fake seconds."""

from contextlib import chdir
from itertools import count
from shutil import rmtree

from typer.testing import CliRunner

from stages import align, preprocess, tokenize
from tests.benchmarks.script import script
from wxb.core.params import load

script("speed/timing")
benchmark = script("speed/tokenize_align")


def test_tokens_and_tags_are_timed_in_memory_and_as_stages(monkeypatch):
    seconds = count()

    def run(verb, folder):
        with chdir(folder):
            name = "pii" if verb == "preprocess" else "timed"
            verbs = {"preprocess": preprocess, "tokenize": tokenize, "align": align}
            rmtree(f"data/{benchmark.OUTPUTS[verb]}", ignore_errors=True)
            verbs[verb].main(load(), name)
        return next(seconds), 1.0

    monkeypatch.setattr(benchmark, "_run", run)
    options = ["--records", "100", "--turns", "1", "--sizes", "200"]
    output = CliRunner().invoke(benchmark.app, options, catch_exceptions=False).output
    for kind in ("wordpiece", "byte-level-bpe"):
        assert f"{kind}, stages" in output
    assert output.count("encode_batch") == output.count("align      │ 200") == 2
