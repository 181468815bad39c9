"""Copy, download or generate the raw files of a corpus, unchanged."""

from pathlib import Path

from wxb.core import paths
from wxb.core.files import publish
from wxb.core.params import Params, read_yaml
from wxb.corpora import fetching
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write the raw files of the corpus `name` to data/raw/<name>.

    Keeps existing ones if the source does not exist here.
    """
    corpus = params.block("corpora", name)
    if not Path(corpus.path).exists() and is_made_from(name, corpus.path):
        print(f"{corpus.path} does not exist; {paths.raw(name)} is kept", flush=True)
        return
    with publish(paths.raw(name)) as (out,):
        out.mkdir()
        fetching.fetch(corpus, out, seed=params.seed, label=f"download@{name}")


def is_made_from(name: str, source: str) -> bool:
    """Whether data/raw/<name> exists, and dvc.lock says that it was made from a source."""
    lockfile = Path("dvc.lock")
    if not (paths.raw(name).is_dir() and lockfile.is_file()):
        return False
    record = read_yaml(lockfile)["stages"].get(f"download@{name}", {"deps": []})
    return any(dep["path"] == source for dep in record["deps"])


if __name__ == "__main__":
    run("download", main, __doc__)
