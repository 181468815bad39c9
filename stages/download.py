"""Bring the raw data of one corpus into the project, unchanged."""

from wxb.core import paths
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.corpora import fetching
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Fetch the corpus `name` of params.yaml into data/raw/<name>."""
    corpus = params.named("corpora", name)
    with publish(paths.raw(name)) as (out,):
        out.mkdir()
        fetching.fetch(corpus, out, seed=params.seed, label=f"download@{name}")


if __name__ == "__main__":
    run("download", main, __doc__)
