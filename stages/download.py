"""Copy, download or generate the raw files of a corpus, unchanged."""

from wxb.core import paths
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.corpora import fetching
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write the raw files of the corpus `name` to data/raw/<name>."""
    corpus = params.block("corpora", name)
    with publish(paths.RAW / name) as (out,):
        out.mkdir()
        fetching.fetch(corpus, out, seed=params.seed, caption=f"download@{name}")


if __name__ == "__main__":
    run("download", main, __doc__)
