"""Tokenizers: trained here or loaded, with character offsets that are checked, not trusted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params.backbones import Backbone
from wxb.core.progress import tracked
from wxb.corpora.text import vocabulary as words
from wxb.corpora.text.encoded import Encoded, joined
from wxb.corpora.text.offsets import on_text

if TYPE_CHECKING:
    # Its import takes seconds, and brings torch: not for stages that only tokenize.
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

AnyTokenizer: TypeAlias = "PreTrainedTokenizerBase | SavedTokenizer"

SPECIAL_TOKENS = {
    "wordpiece": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
    "byte-level-bpe": {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
}
CONFIG = "tokenizer_config.json"


def train(
    kind: str, vocabulary: int, texts: Sequence[str]
) -> PreTrainedTokenizerFast | BareTokenizer:
    """Train a WordPiece (`[CLS] text [SEP]`), byte-level BPE (`<s> text`) or words tokenizer.

    The first two split digits one by one, so that any number can be spelled. The same texts give
    the same tokenizer, byte for byte.
    """
    if kind == "words":
        return BareTokenizer(words.train(vocabulary, texts), words.SPECIAL)
    special = SPECIAL_TOKENS[kind]
    tokenizer = (_wordpiece if kind == "wordpiece" else _byte_level_bpe)(
        vocabulary, texts, list(special.values())
    )
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _wordpiece(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)]
    )
    # The trainer numbers characters in the order of a hash map, which differs between runs.
    # Reserving them as special tokens, sorted, makes training repeatable.
    reserved = special + _alphabet(tokenizer, texts)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=reserved, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Special tokens are cut out of a text before all else; single characters must not be.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """The characters that begin (`a`) and continue (`##a`) words, sorted."""
    symbols: set[str] = set()
    for text in texts:
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(
            tokenizer.normalizer.normalize_str(text)
        ):
            symbols.add(word[0])
            symbols.update(f"##{character}" for character in word[1:])
    return sorted(symbols)


def _byte_level_bpe(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            # As in BERT: else a token can hold the end of a name and the start of the next word.
            pre_tokenizers.Split(Regex(r"[\p{Han}\p{P}]"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def load(folder: str | Path, revision: str | None = None) -> Any:
    """Load a fast tokenizer from a local folder or, pinned by its revision, from the hub.

    It is transformers', or a SavedTokenizer of one that has nothing to do with transformers.

    Raises WxbError when there is none, and for one without character offsets.
    """
    if BareTokenizer.made(Path(folder)):
        return SavedTokenizer(Path(folder))
    with hub.checkpoint(folder, revision) as found:
        tokenizer = pretrained.tokenizer(found)
    if not tokenizer.is_fast:
        raise WxbError(
            f"{folder}: found a tokenizer without character offsets ({type(tokenizer).__name__});"
            " expected one with a tokenizer.json"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


class BareTokenizer:
    """A tokenizer of the tokenizers library alone, with its special tokens by their names."""

    def __init__(self, backend: Tokenizer, special: Mapping[str, str]) -> None:
        self.backend_tokenizer, self.special = backend, dict(special)

    @classmethod
    def made(cls, folder: Path) -> bool:
        """Whether the tokenizer in a folder is one."""
        path = folder / CONFIG
        return path.is_file() and read_json(path).get("tokenizer_class") == cls.__name__

    def save_pretrained(self, folder: Path) -> None:
        """Write the files that SavedTokenizer reads."""
        folder.mkdir(parents=True, exist_ok=True)
        self.backend_tokenizer.save(str(folder / "tokenizer.json"))
        write_json(folder / CONFIG, {"tokenizer_class": type(self).__name__, **self.special})


class SavedTokenizer:
    """A fast tokenizer as `save_pretrained` leaves it in a folder, read without transformers.

    Its attributes are called as those of transformers' tokenizers, and None where it has no such
    token. Raises ValueError where the folder holds no such tokenizer.
    """

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        try:
            self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            named = read_json(folder / CONFIG)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(
                f"{folder}: expected the tokenizer.json and tokenizer_config.json that a stage"
                f" wrote; found: {error}"
            ) from error
        self.unk_token_id = self._id(named.get("unk_token"))
        self.eos_token_id = self._id(named.get("eos_token"))
        self.pad_token_id = self._id(named.get("pad_token"), self.eos_token_id)

    def _id(self, token: str | dict[str, Any] | None, default: int | None = None) -> int | None:
        content = token["content"] if isinstance(token, dict) else token
        return default if content is None else self.backend_tokenizer.token_to_id(content)

    def save_pretrained(self, folder: Path) -> None:
        """Copy the files."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("tokenizer.json", CONFIG):
            shutil.copyfile(Path(self.name_or_path, name), folder / name)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))


CHUNK = 4096  # texts at a time: what the library tells of a token takes many bytes


def encode(tokenizer: AnyTokenizer, texts: Sequence[str], *, label: str | None = None) -> Encoded:
    """Tokenize whole texts, without special tokens, with checked offsets.

    Shows progress under a `label`. Raises WxbError when the tokenizer's offsets are wrong and right
    ones cannot be derived.
    """
    chunks = range(0, max(1, len(texts)), CHUNK)
    starts = tracked(chunks, label, len(chunks), unit="chunk") if label else chunks
    columns, splits = joined(_encode(tokenizer, texts[start : start + CHUNK]) for start in starts)
    return Encoded(**columns, splits=splits)


def _encode(
    tokenizer: AnyTokenizer, texts: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    encodings = _backend(tokenizer).encode_batch(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
    total = int(lengths.sum())
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int32, total)
    edges = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
    offsets = np.fromiter(edges, np.int64, 2 * total).reshape(-1, 2)
    rows = np.repeat(np.arange(len(texts)), lengths)
    starts, ends = on_text(tokenizer, ids, offsets, rows, texts)
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return {"ids": ids, "starts": starts, "ends": ends}, splits


def special_tokens(tokenizer: AnyTokenizer) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The special tokens that stand before and after every text."""
    encoding = _backend(tokenizer).encode("0", add_special_tokens=True)
    inner = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
    ids = np.array(encoding.ids, np.int32)
    return ids[: inner[0]], ids[inner[-1] + 1 :]


def ids_of(
    tokenizer: AnyTokenizer, texts: Sequence[str], *, special: bool = False
) -> list[NDArray[np.int32]]:
    """The ids of short texts, each on its own and uncut.

    Text is text, even where it looks like a special token of the tokenizer, unless `special`.
    """
    backend = _backend(tokenizer, special=special)
    encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


def _backend(tokenizer: AnyTokenizer, *, special: bool = False) -> Tokenizer:
    """The library's tokenizer, without the padding and truncation that its file may ask for."""
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = not special  # what looks like a special token is text, too
    return backend


def make(backbone: Backbone, texts: Sequence[str]) -> Any:
    """The tokenizer of a backbone: trained on the texts, or its checkpoint's own."""
    if backbone.tokenizer:
        return train(backbone.tokenizer.kind, backbone.tokenizer.vocabulary, texts)
    assert backbone.checkpoint is not None
    return load(backbone.checkpoint, backbone.revision)
