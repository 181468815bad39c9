"""Both tables are printed, with all steps in this process and fake seconds."""

from contextlib import chdir
from itertools import count

from typer.testing import CliRunner

from stages import align, compare, evaluate, preprocess, tokenize, train
from tests.benchmarks.script import script
from wxb.core.params import load

script("speed/timing")
items = script("speed/items")
benchmark = script("speed/tokenize_align")


def test_tokens_and_tags_are_timed_in_memory_and_as_stages(monkeypatch):
    seconds = count()

    def run(verb, name, folder):
        modules = (preprocess, tokenize, align, items, train, evaluate, compare)
        (module,) = (module for module in modules if module.__name__.split(".")[-1] == verb)
        with chdir(folder):
            module.main(load(), name)
        return next(seconds), 1.0

    monkeypatch.setattr(benchmark, "_run", run)
    monkeypatch.setattr(benchmark, "KINDS", ("byte-level-bpe",))
    options = ["--records", "100", "--turns", "1", "--sizes", "200"]
    output = CliRunner().invoke(benchmark.app, options, catch_exceptions=False).output
    assert output.count("encode_batch") == 1
    for verb in benchmark.STEPS:
        assert output.count(f"| {verb} | 200 |") == 1
