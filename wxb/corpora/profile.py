"""The statistics of a clean corpus; they account for every raw record."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.near import distances, five_words
from wxb.corpora.reading import Reading, alphabetical_counts, length_quantiles
from wxb.corpora.records import Record, Reject

Shares = dict[str, float | None]  # None: of no records

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def profile(
    splits: Mapping[str, Sequence[Record]], rejects: Sequence[Reject], task: Reading
) -> dict[str, Any]:
    """Count rejects and repairs, list train labels, describe splits and leakage of test sets."""
    records = [record for members in splits.values() for record in members]
    labelled = {n: [r for r in members if r.gold is not None] for n, members in splits.items()}
    train, test_sets = labelled["train"], [n for n in splits if n not in ("train", "valid")]
    return {
        "records": {
            "raw": len(records) + len(rejects),
            "rejected": len(rejects),
            **{name: len(members) for name, members in splits.items()},
        },
        "rejects": alphabetical_counts(reject.reason for reject in rejects),
        "repaired": alphabetical_counts(repair for r in records for repair in r.repaired),
        "labels": task.labels(splits["train"]),
        "nearness": {name: nearness(labelled[name], train, task) for name in test_sets},
        "verbatim": {name: verbatim(labelled[name], train, task) for name in test_sets},
        "splits": {n: _describe(members, labelled[n], task) for n, members in splits.items()},
    }


def nearness(test: Sequence[Record], train: Sequence[Record], task: Reading) -> Shares:
    """How many labelled test records nearly repeat a labelled training record.

    `records` is the number of those with a `leakage_text`. The others are the shares of them, to 4
    decimals, that are within one and two words of a training one; None if there are no records.
    """
    texts, others = (filter(None, map(task.leakage_text, records)) for records in (test, train))
    words = distances(texts, others)
    return {
        "records": len(words),
        "within_one_word": _rounded_share(words <= 1),
        "within_two_words": _rounded_share(words <= 2),
    }


def verbatim(test: Sequence[Record], train: Sequence[Record], task: Reading) -> Shares:
    """The shares of sentences, and of runs of five words, of test records that training has.

    Compares labelled records by `sentence_text`. Shares have 4 decimals; None without any parts.
    """
    texts, others = ([*map(task.sentence_text, records)] for records in (test, train))
    shares = {}
    for name, parts in (("sentences", SENTENCE_END.split), ("five_words", five_words)):
        counts = Counter(part for text in texts for part in parts(text) if part)
        known = {part for text in others for part in parts(text) if part in counts}
        shares[name] = _rounded_share(np.array([part in known for part in counts.elements()], bool))
    return shares


def _rounded_share(mask: NDArray[np.bool_]) -> float | None:
    return round(float(mask.mean()), 4) if len(mask) else None


def _describe(
    records: Sequence[Record], labelled: Sequence[Record], task: Reading
) -> dict[str, Any]:
    """Counts of labelled and other records, near duplicates, groups, languages, gold; lengths."""
    first_group: dict[bytes, str] = {}  # by wording
    near_duplicates, sharing = 0, set()
    for record in records:
        if record.wording:
            near_duplicates += record.wording in first_group
            first = first_group.setdefault(record.wording, record.group)
            if first != record.group:
                sharing |= {first, record.group}
    return {
        "labelled": len(labelled),
        "unlabelled": len(records) - len(labelled),
        "near_duplicates": near_duplicates,
        "groups": len({record.group for record in records}),
        "groups_sharing_wordings": len(sharing),
        "characters": length_quantiles([len(record.input) for record in records]),
        "languages": alphabetical_counts(record.language or "unknown" for record in records),
        **task.statistics(labelled),
    }
