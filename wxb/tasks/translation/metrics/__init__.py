"""The scores of translation: BLEU, chrF, TER and exact matches.

All are functions of sacrebleu's own statistics, which add up over sentences; the scores of their
sums are those of `sacrebleu.corpus_score` (Post 2018). The columns of statistics: lengths and
n-grams of BLEU (Papineni et al. 2002), character n-grams of chrF (Popović 2015), edits and words of
TER (Snover et al. 2006), exact matches, sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

from wxb.metrics import DIGITS, Metric, scorer

if TYPE_CHECKING:
    from wxb.corpora.records import Record

PREDICTED, REFERENCE = 0, 1  # lengths in words
N_GRAMS = slice(0, 10)  # all columns of BLEU: lengths, n-grams that match, n-grams
CHARACTERS = slice(N_GRAMS.stop, N_GRAMS.stop + 3 * CHRF.CHAR_ORDER)
EDITS, WORDS, EXACT, SENTENCES = range(CHARACTERS.stop, CHARACTERS.stop + 4)
COLUMNS = SENTENCES + 1

# As in WMT: mteval-v13a for languages with spaces, characters for Chinese.
SPACED, CHINESE = "13a", "zh"
_HAN = regex.compile(r"\p{Han}")

# The fewest and the most words of a source; a Chinese character is a word.
BUCKETS = ((1, 5), (6, 10), (11, 20), (21, None))
UNSEEN = ("all words in training", "a word that training lacks")
BREAKDOWN = "by_kind.csv"

# A word of any language; a Chinese or Japanese character is one.
_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}"
_WORD = regex.compile(rf"(?V1)[{_ALONE}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+")


class PredictionRow(NamedTuple):
    """A test record with its references and a system's translation.

    It is `unseen` if its source, or every reference, has a word that no training record has.
    """

    id: str
    input: str
    gold: tuple[str, ...]
    predicted: str
    group: str = ""  # of rows that are not independent; empty: a group of its own
    unseen: bool = False
    attention: Mapping[str, Any] | None = None  # `source` and `target` tokens, `weights` (T, S)


class Words(NamedTuple):
    """The words of sources and of references, in lower case."""

    source: frozenset[str]
    target: frozenset[str]


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def unseen(record: Record, vocabulary: Words) -> bool:
    """Whether the source of a record, or each of its references, has an unknown word."""
    return not {*words(record.input)} <= vocabulary.source or all(
        not {*words(reference)} <= vocabulary.target for reference in record.gold
    )


def _signature() -> str:
    """sacrebleu's signature of BLEU, with a variable number of references."""
    metric = BLEU(tokenize=SPACED)
    metric.corpus_score(["a"], [["a"]])
    signature = str(metric.get_signature()).replace("nrefs:1", "nrefs:var")
    return f"{signature} (tok:{CHINESE} where references are Chinese)"


class Scorer(scorer.Scorer):
    """The scores of translation."""

    METRICS = (
        Metric("bleu", "BLEU", scale=100.0, decimals=1),
        Metric("chrf", "chrF", scale=100.0, decimals=1),
        Metric("ter", "TER", lower_is_better=True, scale=None, decimals=1),
        Metric("exact", "exact match"),
        Metric("length_ratio", "length ratio", scale=None),
    )
    HEADLINE = "bleu"
    SIGNATURE = f"sacrebleu {_signature()}"
    UNIT = "sentences"
    COUNTS: ClassVar = {"exact_matches": "exact matches", "support": "sentences"}
    ROW = PredictionRow

    def vocabulary(self, records: Iterable[Record]) -> Words:
        """The words of the training sources and of their references."""
        labelled = [record for record in records if record.gold]
        references = [reference for record in labelled for reference in record.gold]
        return Words(
            frozenset(word for record in labelled for word in words(record.input)),
            frozenset(word for reference in references for word in words(reference)),
        )

    def fields(self, record: Record, prediction: Any, vocabulary: Words) -> dict[str, Any]:
        """The fields `predicted` (the best hypothesis), `unseen` and `attention` of a row."""
        return {
            "predicted": prediction.text,
            "unseen": unseen(record, vocabulary),
            "attention": prediction.attention,
        }

    def parse(self, row: Mapping[str, Any]) -> PredictionRow:
        """The row of a parsed line of predictions.jsonl."""
        return PredictionRow(**{**row, "gold": tuple(row["gold"])})

    def statistics(self, rows: Sequence[PredictionRow]) -> NDArray[np.float64]:
        """The statistics of rows (N, COLUMNS)."""
        return statistics([row.predicted for row in rows], [row.gold for row in rows])

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums of statistics (..., COLUMNS)."""
        return {
            "bleu": bleu(sums),
            "chrf": _scores(CHRF(), sums[..., CHARACTERS]),
            "ter": _scores(TER(), sums[..., EDITS : WORDS + 1]),
            "exact": scorer.ratio(sums[..., EXACT], sums[..., SENTENCES]),
            "length_ratio": scorer.ratio(sums[..., PREDICTED], sums[..., REFERENCE]),
        }

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Counts of sentences and of exact matches, means over runs (R, COLUMNS)."""
        exact, support = np.rint(sums.mean(axis=0)[[EXACT, SENTENCES]]).astype(int).tolist()
        return {"support": support, "exact_matches": exact}

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Scores by length of the source, and by whether training has all words."""
        table = self.statistics(rows)
        lengths = np.array([len(words(row.input)) for row in rows])
        is_unseen = np.array([row.unseen for row in rows])
        kinds = {
            f"{low} to {high} words" if high else f"{low} words or more": (lengths >= low)
            & (lengths <= (high or np.inf))
            for low, high in BUCKETS
        } | dict(zip(UNSEEN, (~is_unseen, is_unseen), strict=True))
        return {"by_kind": {kind: self._row(table[mask]) for kind, mask in kinds.items()}}

    def write_details(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Write the scores by kind of sentence as CSV."""
        keys = ["sentences", *(metric.key for metric in self.METRICS)]
        kinds = self.details(rows)["by_kind"]
        lines = ([kind, *(row.get(key, "") for key in keys)] for kind, row in kinds.items())
        scorer.write_table(folder / BREAKDOWN, ["kind", *keys], lines)

    def _row(self, table: NDArray[Any]) -> dict[str, float]:
        """The count and the scores of sentences with statistics (N, COLUMNS)."""
        scores = self.scores(table.sum(axis=0)) if len(table) else {}
        return {
            "sentences": len(table),
            **{key: round(float(value), DIGITS) for key, value in scores.items()},
        }


def statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The statistics of translations with their references: (N, COLUMNS)."""
    if not predicted:
        return np.zeros((0, COLUMNS))
    pairs = [*zip(predicted, gold, strict=True)]
    parts = [
        bleu_statistics(predicted, gold),
        CHRF()._extract_corpus_statistics(predicted, _streams(gold)),
        [_edits(text, tuple(references)) for text, references in pairs],
        [(text in references, 1) for text, references in pairs],
    ]
    return np.hstack(parts).astype(float)


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


def _scores(metric: BLEU | CHRF | TER, sums: NDArray[Any]) -> NDArray[Any]:
    """A metric (...) of sums (..., C) of its statistics."""
    rows = sums.reshape(-1, sums.shape[-1]).tolist()
    scores = [metric._compute_score_from_stats(row).score for row in rows]
    return np.array(scores).reshape(sums.shape[:-1])
