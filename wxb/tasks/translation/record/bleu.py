"""BLEU of translations from sacrebleu's statistics, which add up over sentences."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

# As in WMT: mteval-v13a for languages with spaces, its version for Chinese; characters for others.
SPACED, CHINESE, CHARACTERS = "13a", "zh", "char"
HAN = regex.compile(r"\p{Han}")
NO_SPACES = regex.compile(
    r"[\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
)


def tokenizer_of(text: str) -> str:
    """sacrebleu's tokenizer of a text: CHARACTERS or CHINESE if a letter needs it, else SPACED."""
    if NO_SPACES.search(text):
        return CHARACTERS
    return CHINESE if HAN.search(text) else SPACED


def bleu_statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """sacrebleu's statistics (N, 10), with the tokenizer that suits each first reference."""
    kinds = [tokenizer_of(refs[0]) for refs in gold]
    table = np.zeros((len(predicted), 10))
    for tokenizer in (SPACED, CHINESE, CHARACTERS):
        if indices := [index for index, kind in enumerate(kinds) if kind == tokenizer]:
            table[indices] = BLEU(tokenize=tokenizer)._extract_corpus_statistics(
                [predicted[i] for i in indices], streams([gold[i] for i in indices])
            )
    return table


def streams(gold: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The first references of all sentences, the second ones, and so on; None for missing ones."""
    return [[*column] for column in zip_longest(*gold)]
