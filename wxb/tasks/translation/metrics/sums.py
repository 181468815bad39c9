"""What adds up over sentences, as sacrebleu counts it, and the scores of any sums of it.

Scores of sums are computed here for many sums at once, as the bootstrap asks for; they are those of
`sacrebleu.corpus_score` (Post 2018). Columns: lengths and n-grams of BLEU (Papineni et al. 2002),
character n-grams of chrF (Popović 2015), edits and words of TER (Snover et al. 2006), exact
matches, sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

ORDERS = 4  # BLEU's n-grams
LENGTHS, CORRECT, TOTAL = slice(0, 2), slice(2, 2 + ORDERS), slice(2 + ORDERS, 2 + 2 * ORDERS)
CHARACTERS = slice(TOTAL.stop, TOTAL.stop + 3 * CHRF.CHAR_ORDER)
EDITS, WORDS, EXACT, SENTENCES = range(CHARACTERS.stop, CHARACTERS.stop + 4)
COLUMNS = SENTENCES + 1

BETA = CHRF.BETA**2  # recall counts so much more than precision
# As WMT has it: mteval-v13a for languages with spaces, characters for Chinese.
SPACED, CHINESE = "13a", "zh"


def _signature() -> str:
    """sacrebleu's own, but for the number of references, of which sentences have one or several."""
    metric = BLEU(tokenize=SPACED)
    metric.corpus_score(["a"], [["a"]])
    found = str(metric.get_signature()).replace("nrefs:1", "nrefs:var")
    return f"{found} (tok:{CHINESE} where references are Chinese)"


SIGNATURE = _signature()
_HAN = regex.compile(r"\p{Han}")


def statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """What adds up of sentences with their references: (N, COLUMNS)."""
    table = np.zeros((len(predicted), COLUMNS))
    if not predicted:
        return table
    table[:, : TOTAL.stop] = bleu_statistics(predicted, gold)
    streams = _streams(gold)
    table[:, CHARACTERS] = CHRF()._extract_corpus_statistics(predicted, streams)
    table[:, EDITS : WORDS + 1] = [
        _edits(one, tuple(refs)) for one, refs in zip(predicted, gold, strict=True)
    ]
    table[:, EXACT] = [one in refs for one, refs in zip(predicted, gold, strict=True)]
    table[:, SENTENCES] = 1
    return table


def bleu_statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The columns that BLEU is made of (N, 10)."""
    chinese = np.array([bool(_HAN.search(refs[0])) for refs in gold], bool)
    table = np.zeros((len(predicted), TOTAL.stop))
    for tokenizer, chosen in ((SPACED, ~chinese), (CHINESE, chinese)):
        if places := np.flatnonzero(chosen).tolist():
            table[places] = BLEU(tokenize=tokenizer)._extract_corpus_statistics(
                [predicted[place] for place in places], _streams([gold[place] for place in places])
            )
    return table


def _streams(gold: Sequence[Sequence[str]]) -> list[list[Any]]:
    """First references, second references, and so on: None where a sentence has no more."""
    most = max(map(len, gold))
    return [[refs[i] if i < len(refs) else None for refs in gold] for i in range(most)]


@cache
def _edits(predicted: str, references: tuple[str, ...]) -> list[float]:
    """Edits of TER and words of the references; kept, as it takes the longest.

    A Chinese character is a word: sacrebleu divides them where it normalises, too.
    """
    chinese = bool(_HAN.search(references[0]))
    metric = TER(normalized=chinese, asian_support=chinese)
    found: list[float] = metric._extract_corpus_statistics([predicted], _streams([references]))[0]
    return found


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """One by the other; 0 where there is nothing to divide by."""
    found = np.zeros(np.shape(numerator))
    np.divide(numerator, denominator, out=found, where=np.asarray(denominator) != 0)
    return found


def bleu(sums: NDArray[Any]) -> NDArray[Any]:
    """BLEU (...) of sums (..., 10 or more); an order without a match counts half of the one before.

    That is the smoothing "exp" of sacrebleu. Without any match, or where no sentence is long enough
    to have an n-gram of each order, BLEU is 0.
    """
    predicted, reference = np.moveaxis(sums[..., LENGTHS], -1, 0)
    correct, total = sums[..., CORRECT], sums[..., TOTAL]
    halved = 0.5 ** np.cumsum(correct == 0, axis=-1)
    precisions = ratio(np.where(correct == 0, halved, correct), total)
    matched = np.asarray(correct.any(axis=-1) & total.all(axis=-1))
    mean = np.exp(np.log(np.where(matched[..., None], precisions, 1)).mean(axis=-1))
    brevity = np.exp(np.minimum(0, 1 - ratio(reference, np.maximum(predicted, 1e-300))))
    return np.where(matched, 100 * brevity * mean, 0.0)


def chrf(sums: NDArray[Any]) -> NDArray[Any]:
    """chrF2 (...) of sums (..., COLUMNS), over the orders that both sides have."""
    counts = sums[..., CHARACTERS].reshape(*sums.shape[:-1], -1, 3)
    predicted, reference, correct = np.moveaxis(counts, -1, 0)  # (..., orders)
    both = (predicted > 0) & (reference > 0)
    precision, recall = (
        ratio(np.where(both, ratio(correct, of), 0).sum(axis=-1), both.sum(axis=-1))
        for of in (predicted, reference)
    )
    return 100 * (1 + BETA) * ratio(precision * recall, BETA * precision + recall)


def ter(sums: NDArray[Any]) -> NDArray[Any]:
    """Edits for each 100 words of the references (...), of sums (..., COLUMNS)."""
    return 100 * ratio(sums[..., EDITS], sums[..., WORDS])


def length_ratio(sums: NDArray[Any]) -> NDArray[Any]:
    """Words written for each word of the references (...), of sums (..., 10 or more)."""
    return ratio(sums[..., 0], sums[..., 1])
