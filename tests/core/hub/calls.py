"""Do some calls of wxb, given as JSON, one after the other, and print their outcomes as JSON.

Only those of `tokenizer`, `model` and `stage` import transformers, which takes seconds.
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

    found = tokenizers.load(name, revision)
    encoded = tokenizers.encode(found, ["Call Ann at 112"])
    before, after = tokenizers.special_tokens(found)
    ids = [*before.tolist(), *encoded.ids.tolist(), *after.tolist()]
    return {"tokens": found.convert_ids_to_tokens(ids), "pad": found.pad_token}


def model(name, revision=None):
    from wxb.training.backbones.weights import initial

    found = initial(
        Backbone(corpus="c", objective="none", checkpoint=name, revision=revision), None
    )
    words = found.get_input_embeddings().weight.detach().float()
    return {"class": type(found).__name__, "words": sha256(words.numpy().tobytes()).hexdigest()}


def checkpoint(name, revision=None, weights=True):
    """The files of the folder to load from."""
    with hub.checkpoint(name, revision, weights=weights) as folder:
        return sorted(path.name for path in folder.iterdir())


def corpus(repository, revision="main", *files):
    """The files that come, and what they hold."""
    origin = {"repository": repository, "revision": revision, "files": files or ["*.csv"]}
    split = {"test": 0.5, "valid": 0.1}
    asked = Corpus.model_validate({"task": "ner", "path": ".", "hub": origin, "split": split})
    folder = Path(tempfile.mkdtemp(dir="."))
    fetching.fetch(asked, folder, seed=1, label="download@test")
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {p.relative_to(folder).as_posix(): sha256(p.read_bytes()).hexdigest() for p in found}


def profile(name):
    profiles.switch(name)


def stage(verb, name):
    try:
        importlib.import_module(f"stages.{verb}").main(load(), name)
    except WxbError as error:
        sys.exit(str(error))  # the next stage would stumble over it


def outcome(verb, *arguments):
    """What a call gives; a WxbError as its message."""
    try:
        return globals()[verb](*arguments)
    except WxbError as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps([outcome(*call) for call in json.loads(sys.argv[1])]))
