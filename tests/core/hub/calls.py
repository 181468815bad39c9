"""Make the calls of wxb in a JSON argument, and print their results as JSON.

Only `tokenizer`, `model` and `stage` import transformers, which takes seconds.
"""

import importlib
import json
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.core.params.backbones import Backbone
from wxb.corpora import fetching
from wxb.project import profiles
from wxb.tasks.ner.params import Corpus


def tokenizer(name, revision=None):
    from wxb.corpora.text import tokenizers

    loaded = tokenizers.load(name, revision)
    encoded = tokenizers.encode(loaded, ["Call Ann at 112"])
    before, after = tokenizers.special_tokens(loaded)
    ids = [*before.tolist(), *encoded.ids.tolist(), *after.tolist()]
    return {"tokens": loaded.convert_ids_to_tokens(ids), "pad": loaded.pad_token}


def model(name, revision=None):
    from wxb.training.backbones.weights import initial_model

    loaded = initial_model(
        Backbone(corpus="c", objective="none", checkpoint=name, revision=revision), None
    )
    words = loaded.get_input_embeddings().weight.detach().float()
    return {"class": type(loaded).__name__, "words": sha256(words.numpy().tobytes()).hexdigest()}


def checkpoint(name, revision=None, weights=True):
    """The files of the folder to load from."""
    with hub.checkpoint(name, revision, weights=weights) as folder:
        return sorted(path.name for path in folder.iterdir())


def corpus(repository, revision="main", *files):
    """The hashes of the fetched files."""
    origin = {"repository": repository, "revision": revision, "files": files or ["*.csv"]}
    split = {"test": 0.5, "valid": 0.1}
    corpus = Corpus.model_validate({"task": "ner", "path": ".", "hub": origin, "split": split})
    folder = Path(tempfile.mkdtemp(dir="."))
    fetching.fetch(corpus, folder, seed=1, label="download@test")
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {p.relative_to(folder).as_posix(): sha256(p.read_bytes()).hexdigest() for p in files}


def profile(name):
    profiles.switch(name)


def stage(verb, name):
    try:
        importlib.import_module(f"stages.{verb}").main(load(), name)
    except WxbError as error:
        sys.exit(str(error))  # the next stage would fail


def result(verb, *arguments):
    """The result of a call; the message of a WxbError."""
    try:
        return globals()[verb](*arguments)
    except WxbError as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps([result(*call) for call in json.loads(sys.argv[1])]))
