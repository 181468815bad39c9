"""The scores of translation: BLEU, chrF, TER and exact matches.

All are functions of sacrebleu's own statistics, which add up over sentences; the scores of their
sums are those of `sacrebleu.corpus_score` (Post 2018).

Sources: Papineni et al. (2002) for BLEU, Popović (2015) for chrF, Snover et al. (2006) for TER.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

from wxb.corpora.records import Record
from wxb.metrics import Metric, scorer
from wxb.metrics.intervals import Sums
from wxb.tasks.translation.record import bleu

# The fewest and the most words of a source; a Chinese character is a word.
BUCKETS = ((1, 5), (6, 10), (11, 20), (21, None))
UNSEEN = ("all words in training", "a word that training lacks")

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
    language: str = ""


class Words(NamedTuple):
    """The words of sources and of references, in lower case."""

    source: frozenset[str]
    target: frozenset[str]


def words(text: str) -> list[str]:
    """Lower-case words of a text, without punctuation; a Chinese or Japanese character is one."""
    return [word.casefold() for word in _WORD.findall(text)]


def unseen(record: Record, vocabulary: Words) -> bool:
    """Whether the source of a record, or each of its references, has an unknown word."""
    is_known = {*words(record.input)} <= vocabulary.source
    return not (is_known and any({*words(text)} <= vocabulary.target for text in record.gold))


def _signature() -> str:
    """sacrebleu's signature of BLEU, `nrefs:var`, then other tokenizers in parentheses."""
    metric = BLEU(tokenize=bleu.SPACED)
    metric.corpus_score(["a"], [["a"]])
    signature = str(metric.get_signature()).replace("nrefs:1", "nrefs:var")
    return (
        f"{signature} (tok:{bleu.CHINESE} where references are Chinese, tok:{bleu.CHARACTERS} where"
        " they are Japanese or in another script without spaces)"
    )


class Scorer(scorer.Scorer):
    """The scores of translation."""

    METRICS = (
        Metric("bleu", "BLEU", high=100.0, decimals=1),
        Metric("chrf", "chrF", high=100.0, decimals=1),
        Metric("ter", "TER", lower_is_better=True, high=None, decimals=1, fallback_bound=100.0),
        Metric("exact", "exact match"),
        Metric("length_ratio", "length ratio", high=None),
    )
    SIGNATURE = f"sacrebleu {_signature()}"
    UNIT = "sentences"
    COUNTS: ClassVar = {"exact_matches": "exact matches", "support": "sentences"}
    ROW = PredictionRow

    def vocabulary(self, records: Iterable[Record]) -> Words:
        """The words of the sources and of the references of labelled training records."""
        labelled = [record for record in records if record.gold]
        references = [reference for record in labelled for reference in record.gold]
        return Words(
            frozenset(word for record in labelled for word in words(record.input)),
            frozenset(word for reference in references for word in words(reference)),
        )

    def task_fields(self, record: Record, prediction: Any, vocabulary: Words) -> dict[str, Any]:
        """`predicted` (the best text), `unseen` (of the record), and `attention` (or None)."""
        return {
            "predicted": prediction.text,
            "unseen": unseen(record, vocabulary),
            "attention": prediction.attention,
        }

    def statistics(self, rows: Sequence[PredictionRow]) -> Sums:
        """sacrebleu's `bleu` (N, 10), `chrf` (N, 18), `ter` (N, 2); `exact`, `sentences` (N,)."""
        predicted, gold = [row.predicted for row in rows], [row.gold for row in rows]
        references = bleu.streams(gold)
        characters = CHRF()._extract_corpus_statistics(predicted, references) if rows else []
        edits = [_ter_statistics(row.predicted, row.gold) for row in rows]
        return {
            "bleu": bleu.bleu_statistics(predicted, gold),
            "chrf": np.array(characters, float).reshape(-1, 3 * CHRF.CHAR_ORDER),
            "ter": np.array(edits, float).reshape(-1, 2),
            "exact": np.array([row.predicted in row.gold for row in rows], float),
            "sentences": np.ones(len(rows)),
        }

    def scores(self, sums: Sums) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums of statistics."""
        predicted, reference = np.moveaxis(sums["bleu"][..., :2], -1, 0)  # lengths in words
        return {
            "bleu": scorer.metric_of_sums(BLEU(), sums["bleu"]).clip(max=100.0),
            "chrf": scorer.metric_of_sums(CHRF(), sums["chrf"]),
            "ter": scorer.metric_of_sums(TER(), sums["ter"]),
            "exact": scorer.ratio(sums["exact"], sums["sentences"]),
            "length_ratio": scorer.ratio(predicted, reference),
        }

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """`support`, `exact_matches`, and scores `by_kind`: by words of the source, by `unseen`."""
        lengths = [len(words(row.input)) for row in rows]
        kinds = {}
        for low, high in BUCKETS:
            kind = f"{low} to {high} words" if high else f"{low} words or more"
            pairs = zip(rows, lengths, strict=True)
            kinds[kind] = [row for row, length in pairs if low <= length <= (high or length)]
        for flag, kind in enumerate(UNSEEN):
            kinds[kind] = [row for row in rows if row.unseen == flag]
        return {
            "support": len(rows),
            "exact_matches": sum(row.predicted in row.gold for row in rows),
            "by_kind": {
                kind: {"sentences": len(rows), **(self.rounded_scores(rows) if rows else {})}
                for kind, rows in kinds.items()
            },
        }


@cache
def _ter_statistics(predicted: str, references: tuple[str, ...]) -> list[float]:
    """TER's edits and mean number of reference words; cached, as TER is the slowest metric.

    If the first reference lacks spaces, a character is a word; sacrebleu supports only Chinese.
    """
    kind = bleu.tokenizer_of(references[0])
    if kind == bleu.CHARACTERS:
        predicted, references = " ".join(predicted), tuple(map(" ".join, references))
    metric = TER(normalized=kind == bleu.CHINESE, asian_support=kind == bleu.CHINESE)
    return metric._extract_corpus_statistics([predicted], bleu.streams([references]))[0]
