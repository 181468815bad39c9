"""The statistics of sentences, as sacrebleu counts them, and the scores of their sums.

The scores are those of `sacrebleu.corpus_score` (Post 2018). The columns of statistics: lengths and
n-grams of BLEU (Papineni et al. 2002), character n-grams of chrF (Popović 2015), edits and words of
TER (Snover et al. 2006), exact matches, sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

PREDICTED, REFERENCE = 0, 1  # lengths in words
N_GRAMS = slice(0, 10)  # all columns of BLEU: lengths, n-grams that match, n-grams
CHARACTERS = slice(N_GRAMS.stop, N_GRAMS.stop + 3 * CHRF.CHAR_ORDER)
EDITS, WORDS, EXACT, SENTENCES = range(CHARACTERS.stop, CHARACTERS.stop + 4)
COLUMNS = SENTENCES + 1

# As in WMT: mteval-v13a for languages with spaces, characters for Chinese.
SPACED, CHINESE = "13a", "zh"


def _signature() -> str:
    """sacrebleu's signature of BLEU, with a variable number of references."""
    metric = BLEU(tokenize=SPACED)
    metric.corpus_score(["a"], [["a"]])
    signature = str(metric.get_signature()).replace("nrefs:1", "nrefs:var")
    return f"{signature} (tok:{CHINESE} where references are Chinese)"


SIGNATURE = _signature()
_HAN = regex.compile(r"\p{Han}")


def statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The statistics of translations with their references: (N, COLUMNS)."""
    table = np.zeros((len(predicted), COLUMNS))
    if not predicted:
        return table
    table[:, N_GRAMS] = bleu_statistics(predicted, gold)
    streams = _streams(gold)
    table[:, CHARACTERS] = CHRF()._extract_corpus_statistics(predicted, streams)
    table[:, EDITS : WORDS + 1] = [
        _edits(text, tuple(refs)) for text, refs in zip(predicted, gold, strict=True)
    ]
    table[:, EXACT] = [text in refs for text, refs in zip(predicted, gold, strict=True)]
    table[:, SENTENCES] = 1
    return table


def bleu_statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The columns of BLEU (N, 10), with the tokenizer that suits each first reference."""
    is_chinese = np.array([bool(_HAN.search(refs[0])) for refs in gold], bool)
    table = np.zeros((len(predicted), N_GRAMS.stop))
    for tokenizer, mask in ((SPACED, ~is_chinese), (CHINESE, is_chinese)):
        if indices := np.flatnonzero(mask).tolist():
            table[indices] = BLEU(tokenize=tokenizer)._extract_corpus_statistics(
                [predicted[i] for i in indices], _streams([gold[i] for i in indices])
            )
    return table


def _streams(gold: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The first references, the second ones, and so on; None if a sentence has fewer."""
    most = max(map(len, gold))
    return [[refs[i] if i < len(refs) else None for refs in gold] for i in range(most)]


@cache
def _edits(predicted: str, references: tuple[str, ...]) -> list[float]:
    """TER's edits and words of the references; cached, as TER is the slowest metric.

    For Chinese references a character is a word, which sacrebleu needs normalization for.
    """
    is_chinese = bool(_HAN.search(references[0]))
    metric = TER(normalized=is_chinese, asian_support=is_chinese)
    counts: list[float] = metric._extract_corpus_statistics([predicted], _streams([references]))[0]
    return counts


def bleu(sums: NDArray[Any]) -> NDArray[Any]:
    """BLEU (...) of sums (..., 10 or more), with sacrebleu's smoothing "exp"."""
    return _scores(BLEU(), sums[..., N_GRAMS])


def chrf(sums: NDArray[Any]) -> NDArray[Any]:
    """chrF2 (...) of sums (..., COLUMNS), over the orders that both sides have n-grams of."""
    return _scores(CHRF(), sums[..., CHARACTERS])


def ter(sums: NDArray[Any]) -> NDArray[Any]:
    """TER (...) of sums (..., COLUMNS): edits per 100 words of the references."""
    return _scores(TER(), sums[..., EDITS : WORDS + 1])


def _scores(metric: BLEU | CHRF | TER, sums: NDArray[Any]) -> NDArray[Any]:
    """A metric (...) of sums (..., C) of its statistics."""
    rows = sums.reshape(-1, sums.shape[-1]).tolist()
    scores = [metric._compute_score_from_stats(row).score for row in rows]
    return np.array(scores).reshape(sums.shape[:-1])
