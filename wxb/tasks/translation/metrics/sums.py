"""The statistics of sentences, as sacrebleu counts them, and the scores of their sums.

Scores are computed for many sums at once, as intervals need them. They equal those of
`sacrebleu.corpus_score` (Post 2018). The columns of statistics: lengths and n-grams of BLEU
(Papineni et al. 2002), character n-grams of chrF (Popović 2015), edits and words of TER (Snover et
al. 2006), exact matches, sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

from wxb.metrics.scorer import ratio

ORDERS = 4  # BLEU's n-grams
LENGTHS, CORRECT, TOTAL = slice(0, 2), slice(2, 2 + ORDERS), slice(2 + ORDERS, 2 + 2 * ORDERS)
CHARACTERS = slice(TOTAL.stop, TOTAL.stop + 3 * CHRF.CHAR_ORDER)
EDITS, WORDS, EXACT, SENTENCES = range(CHARACTERS.stop, CHARACTERS.stop + 4)
COLUMNS = SENTENCES + 1

BETA = CHRF.BETA**2  # the weight of recall relative to precision
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
    table[:, : TOTAL.stop] = bleu_statistics(predicted, gold)
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
    table = np.zeros((len(predicted), TOTAL.stop))
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
    """BLEU (...) of sums (..., 10 or more), with sacrebleu's smoothing "exp".

    The smoothing halves the count for each order without a match. BLEU is 0 without any match, and
    without a sentence that has n-grams of all orders.
    """
    predicted, reference = np.moveaxis(sums[..., LENGTHS], -1, 0)
    correct, total = sums[..., CORRECT], sums[..., TOTAL]
    halved = 0.5 ** np.cumsum(correct == 0, axis=-1)
    precisions = ratio(np.where(correct == 0, halved, correct), total)
    is_positive = np.asarray(correct.any(axis=-1) & total.all(axis=-1))
    mean = np.exp(np.log(np.where(is_positive[..., None], precisions, 1)).mean(axis=-1))
    brevity = np.exp(np.minimum(0, 1 - ratio(reference, np.maximum(predicted, 1e-300))))
    return np.where(is_positive, 100 * brevity * mean, 0.0)


def chrf(sums: NDArray[Any]) -> NDArray[Any]:
    """chrF2 (...) of sums (..., COLUMNS), over the orders that both sides have n-grams of."""
    counts = sums[..., CHARACTERS].reshape(*sums.shape[:-1], -1, 3)
    predicted, reference, correct = np.moveaxis(counts, -1, 0)  # (..., orders)
    both = (predicted > 0) & (reference > 0)
    precision, recall = (
        ratio(np.where(both, ratio(correct, total), 0).sum(axis=-1), both.sum(axis=-1))
        for total in (predicted, reference)
    )
    return 100 * (1 + BETA) * ratio(precision * recall, BETA * precision + recall)


def ter(sums: NDArray[Any]) -> NDArray[Any]:
    """TER (...) of sums (..., COLUMNS): edits per 100 words of the references."""
    return 100 * ratio(sums[..., EDITS], sums[..., WORDS])


def length_ratio(sums: NDArray[Any]) -> NDArray[Any]:
    """Length ratio (...) of sums (..., 10 or more): words predicted per word of the references."""
    return ratio(sums[..., 0], sums[..., 1])
