"""Train and load tokenizers, and tokenize texts with checked character offsets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
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
from wxb.corpora.text.encoded import Encoded, RaggedColumns, concatenate
from wxb.corpora.text.offsets import token_offsets

if TYPE_CHECKING:
    # Its import takes seconds, and imports torch: not for stages that only tokenize.
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

AnyTokenizer: TypeAlias = "PreTrainedTokenizerBase | SavedTokenizer"

CONFIG, CHAT_TEMPLATE = "tokenizer_config.json", "chat_template.jinja"
CHUNK = 4096  # texts at a time: the library uses many bytes per token

# Special tokens by kind of tokenizer, under transformers' names.
_NAMES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
SPECIAL_TOKENS = {
    "wordpiece": {f"{name}_token": token for name, token in _NAMES.items()},
    "byte-level-bpe": {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
    "words": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
}
# A character of Chinese or Japanese, which have no spaces; a word; or a punctuation mark.
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}"
WORD = rf"[{_NO_SPACES}]|[\w\p{{N}}&&[^{_NO_SPACES}]]+|[^\w\p{{N}}\s]"


def train(
    kind: str, vocabulary: int, texts: Sequence[str]
) -> PreTrainedTokenizerFast | BareTokenizer:
    """Train a tokenizer of up to `vocabulary` tokens; the same texts give the same bytes.

    `kind` is "wordpiece" (`[CLS] text [SEP]`), "byte-level-bpe" (`<s> text`) or "words" (in lower
    case, as a BareTokenizer). The first two keep case and split numbers into digits.
    """
    special = SPECIAL_TOKENS[kind]
    trainer = {"wordpiece": _wordpiece, "byte-level-bpe": _byte_level_bpe, "words": _words}[kind]
    tokenizer = trainer(vocabulary, texts, list(special.values()))
    if kind == "words":
        return BareTokenizer(tokenizer, special)
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _words(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    """Train a tokenizer of the most frequent words in lower case, ties in alphabetical order."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocabulary, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _wordpiece(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    """Train a WordPiece that keeps case, splits numbers, and has each character of the texts."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    words, digits = pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, digits])
    # The trainer numbers characters in the order of a hash map, which differs between runs.
    # Sorted special tokens for all characters make training reproducible; `##a` is inside a word.
    symbols: set[str] = set()
    for text in texts:
        normalized = tokenizer.normalizer.normalize_str(text)
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized):
            symbols.add(word[0])
            symbols.update(f"##{character}" for character in word[1:])
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=special + sorted(symbols), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Texts are split at special tokens first, so single characters must not remain special.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _byte_level_bpe(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    """Train a BPE of bytes for `<s> text`; each digit, Han character and punctuation is alone."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    # As in BERT. Otherwise a token can span the end of a name and the next word.
    marks = pre_tokenizers.Split(Regex(r"[\p{Han}\p{P}]"), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, marks, byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    begin = [("<s>", tokenizer.token_to_id("<s>"))]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=begin)
    return tokenizer


class BareTokenizer:
    """A tokenizer of the tokenizers library that transformers cannot load."""

    def __init__(self, backend: Tokenizer, special: Mapping[str, str]) -> None:
        """`special`: special tokens by transformers' names, such as `pad_token`."""
        self.backend_tokenizer, self.special = backend, dict(special)

    def save_pretrained(self, folder: Path) -> None:
        """Write the files that SavedTokenizer reads."""
        folder.mkdir(parents=True, exist_ok=True)
        self.backend_tokenizer.save(str(folder / "tokenizer.json"))
        write_json(folder / CONFIG, {"tokenizer_class": type(self).__name__, **self.special})


class SavedTokenizer:
    """The fast tokenizer in a folder that `save_pretrained` wrote.

    Attributes have transformers' names; the ids of missing special tokens are None.
    """

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = read_json(folder / CONFIG)
        self.special_tokens_map: dict[str, str] = {
            key: value["content"] if isinstance(value, dict) else value
            for key, value in config.items()
            if key.endswith("_token") and value and isinstance(value, (dict, str))
        }
        tokens = self.special_tokens_map.items()
        ids = {key: self.backend_tokenizer.token_to_id(token) for key, token in tokens}
        self.unk_token_id, self.eos_token_id = ids.get("unk_token"), ids.get("eos_token")
        self.pad_token_id = ids.get("pad_token", self.eos_token_id)
        template = folder / CHAT_TEMPLATE
        self.chat_template = template.read_text(encoding="utf-8") if template.is_file() else None

    def save_pretrained(self, folder: Path) -> None:
        """Copy tokenizer.json, its configuration and any chat template to another folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("tokenizer.json", CONFIG, CHAT_TEMPLATE):
            if (file := Path(self.name_or_path, name)).is_file():
                shutil.copyfile(file, folder / name)

    def __len__(self) -> int:
        """The size of the vocabulary, including added tokens."""
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))


def load(folder: str | Path) -> Any:
    """Load the fast tokenizer of a checkpoint, as transformers' class.

    Returns a SavedTokenizer if a BareTokenizer was saved. Keeps only the default chat template. The
    end token pads if there is no padding token. Raises WxbError without both, or without offsets.
    """
    config = Path(folder, CONFIG)
    if config.is_file() and read_json(config).get("tokenizer_class") == BareTokenizer.__name__:
        return SavedTokenizer(Path(folder))
    with hub.checkpoint(folder) as checkpoint:
        is_slow = any(checkpoint.glob("*.model")) and not (checkpoint / "tokenizer.json").exists()
        tokenizer = None if is_slow else pretrained.tokenizer(checkpoint)
    if tokenizer is None or not tokenizer.is_fast:
        cure = "save it by AutoTokenizer with sentencepiece, or choose another checkpoint"
        raise WxbError(f"{folder}: found no tokenizer.json, so no character offsets; {cure}")
    if isinstance(tokenizer.chat_template, dict):  # others are for tools
        tokenizer.chat_template = tokenizer.chat_template.get("default")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise WxbError(f"{folder}/{CONFIG}: expected a `pad_token` or an `eos_token`")
    return tokenizer


def encode(tokenizer: AnyTokenizer, texts: Sequence[str]) -> Encoded:
    """Tokenize whole texts; special tokens are not added or parsed. WxbError for wrong offsets."""
    columns, row_splits = concatenate(
        _encode_chunk(tokenizer, texts[start : start + CHUNK])
        for start in range(0, max(1, len(texts)), CHUNK)
    )
    return Encoded(**columns, row_splits=row_splits)


def _encode_chunk(tokenizer: AnyTokenizer, texts: Sequence[str]) -> RaggedColumns:
    """`ids`, `starts` and `ends` of the tokens, and row splits (N + 1)."""
    backend = backend_of(tokenizer)
    encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
    total = int(lengths.sum())
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int32, total)
    edges = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
    offsets = np.fromiter(edges, np.int64, 2 * total).reshape(-1, 2)
    rows = np.repeat(np.arange(len(texts)), lengths)
    starts, ends = token_offsets(backend, tokenizer.name_or_path, ids, offsets, rows, texts)
    row_splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return {"ids": ids, "starts": starts, "ends": ends}, row_splits


def special_tokens(tokenizer: AnyTokenizer) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ids of the special tokens before and after each text; sets options like `backend_of`."""
    encoding = backend_of(tokenizer).encode("0", add_special_tokens=True)
    inner = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
    ids = np.array(encoding.ids, np.int32)
    return ids[: inner[0]], ids[inner[-1] + 1 :]


def max_text_tokens(tokenizer: AnyTokenizer, max_length: int) -> int:
    """How many tokens of a text fit beside the special ones. Raises WxbError if none does."""
    special = sum(map(len, special_tokens(tokenizer)))
    if max_length <= special:
        raise WxbError(
            f"encoding.max_length: found {max_length}; expected over {special}, the special tokens"
        )
    return max_length - special


def token_ids(
    tokenizer: AnyTokenizer, texts: Sequence[str], *, parse_special: bool = False
) -> list[NDArray[np.int32]]:
    """The token ids of each text, without truncation and without added special tokens.

    Text that looks like a special token, such as `</s>`, becomes one only if `parse_special`.
    """
    backend = backend_of(tokenizer, parse_special=parse_special)
    encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


def text_of(tokenizer: AnyTokenizer, ids: Sequence[int] | NDArray[Any]) -> str:
    """The text of token ids, without special tokens."""
    return str(tokenizer.backend_tokenizer.decode([int(id_) for id_ in ids]))


def backend_of(tokenizer: AnyTokenizer, *, parse_special: bool = False) -> Tokenizer:
    """The library's tokenizer, set in place to `parse_special`, no padding and no truncation."""
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = not parse_special  # True: as ordinary text
    return backend
