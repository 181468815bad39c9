"""Tokenizers as files in a folder, read and written without transformers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tokenizers import Tokenizer

from wxb.core.files import read_json, write_json

if TYPE_CHECKING:
    # Its import takes seconds, and imports torch: not for stages that only tokenize.
    from transformers import PreTrainedTokenizerBase

AnyTokenizer: TypeAlias = "PreTrainedTokenizerBase | SavedTokenizer"

CONFIG = "tokenizer_config.json"


class BareTokenizer:
    """A tokenizer of the tokenizers library that transformers cannot load."""

    def __init__(self, backend: Tokenizer, special: Mapping[str, str]) -> None:
        """`special`: special tokens by transformers' names, such as `pad_token`."""
        self.backend_tokenizer, self.special = backend, dict(special)

    @classmethod
    def is_in(cls, folder: Path) -> bool:
        """Whether a folder has a tokenizer that this class saved."""
        path = folder / CONFIG
        return path.is_file() and read_json(path).get("tokenizer_class") == cls.__name__

    def save_pretrained(self, folder: Path) -> None:
        """Write the files that SavedTokenizer reads."""
        folder.mkdir(parents=True, exist_ok=True)
        self.backend_tokenizer.save(str(folder / "tokenizer.json"))
        write_json(folder / CONFIG, {"tokenizer_class": type(self).__name__, **self.special})


class SavedTokenizer:
    """The fast tokenizer in a folder that `save_pretrained` wrote.

    Attributes have transformers' names; the ids of missing special tokens are None. Raises
    ValueError if the folder has no such tokenizer.
    """

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        try:
            self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            config = read_json(folder / CONFIG)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(
                f"{folder}: expected the tokenizer.json and tokenizer_config.json that a stage"
                f" wrote; found: {error}"
            ) from error
        self.unk_token_id = self._id(config.get("unk_token"))
        self.eos_token_id = self._id(config.get("eos_token"))
        self.pad_token_id = self._id(config.get("pad_token"), self.eos_token_id)

    def _id(self, token: str | dict[str, Any] | None, default: int | None = None) -> int | None:
        content = token["content"] if isinstance(token, dict) else token
        return default if content is None else self.backend_tokenizer.token_to_id(content)

    def save_pretrained(self, folder: Path) -> None:
        """Copy the files to another folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("tokenizer.json", CONFIG):
            shutil.copyfile(Path(self.name_or_path, name), folder / name)

    def __len__(self) -> int:
        """The size of the vocabulary, including added tokens."""
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))
