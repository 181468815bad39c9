"""Records divided into splits that share no text, no wording and no group."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from wxb.core.errors import WxbError
from wxb.core.params.corpora import Split
from wxb.corpora.near import units
from wxb.corpora.records import Record, Reject

Splits = dict[str, list[Record]]
Wording = Callable[[Record], str]  # what near duplicates share; empty: nothing


def divided(
    records: Iterable[Record], split: Split, wording: Wording, *, limit: int | None, seed: int
) -> tuple[Splits, list[Reject]]:
    """The splits in the order of params, and what had to go: repetitions, and what is over `limit`.

    Test sets that files make stay whole, with the duplicates in them, as published scores have
    them; other records go where they repeat one of those. The limit is for all records that are
    divided here, or for the training records of given splits.

    Raises WxbError when a split would be left without labelled records.
    """
    members: dict[str | None, list[Record]] = {}
    for record in records:
        members.setdefault(record.split, []).append(record)
    splits = {name: members.get(name, []) for name in split.tests if name in split.patterns}
    tests = [*chain(*splits.values())]
    if split.files:
        splits["valid"], of_valid = without_duplicates(members.get("valid", []), wording, tests)
        held = [*tests, *splits["valid"]]
        train, of_train = without_duplicates(members.get("train", []), wording, held)
        splits["train"], surplus = limited(train, limit)
        rejects = [*of_valid, *of_train, *surplus]
        how = "its files were read"
    else:
        good, of_rest = without_duplicates(members.get(None, []), wording, tests)
        good, surplus = limited(good, limit)
        splits |= _shared_out(good, split, wording, seed)
        rejects = [*of_rest, *surplus]
        groups = len({record.group for record in good})
        how = f"{len(good)} records in {groups} groups were divided, those of one wording together"
    splits = {name: splits[name] for name in ("train", "valid", *split.tests)}
    _check_labelled(splits, how)
    return splits, rejects


def without_duplicates(
    records: Iterable[Record], wording: Wording, held_out: Sequence[Record] = ()
) -> tuple[list[Record], list[Reject]]:
    """Keep one record of each text, the first labelled one, and none that repeats a held-out one.

    Unlabelled copies of a labelled text go, wherever they stand. Of held-out records not even the
    wording may be repeated.
    """
    held = {record.input: record for record in held_out}
    kept: dict[str, Record] = {}
    rejects = []
    for record in records:
        other = held.get(record.input) or kept.get(record.input)
        if other is None:
            kept[record.input] = record
            continue
        if record.input not in held and other.gold is None and record.gold is not None:
            kept[record.input] = record
            record, other = other, record
        rejects.append(Reject(record.id, "duplicate text", f"same text as {other.id}", record.id))
    near = {wording(record): record for record in reversed(held_out)}
    near.pop("", None)
    for record in [*kept.values()]:
        if repeated := near.get(wording(record)):
            del kept[record.input]
            detail = f"same wording as {repeated.id}"
            rejects.append(Reject(record.id, "near duplicate", detail, record.id))
    return list(kept.values()), rejects


def limited(records: list[Record], limit: int | None) -> tuple[list[Record], list[Reject]]:
    """The first so many records, and the others as rejects."""
    surplus = records[limit:] if limit else []
    return records[:limit], [Reject(r.id, "over max_records", "", r.id) for r in surplus]


def _shared_out(records: Sequence[Record], split: Split, wording: Wording, seed: int) -> Splits:
    """Divide records so that no group and no wording stands in two splits.

    First go the further test sets, whole values of a field; then test, then valid. The values (or
    groups) are shuffled by a hash of seed and name, so neither the order of the file nor other
    records move them; in turn they go in, with all that has to stay with them, up to the share of
    all records, as nearly as that allows.
    """
    assert split.test is not None
    assert split.valid is not None
    held_out = enumerate(split.held_out.items())
    steps: list[tuple[str, float, Callable[[Record], str]]] = [
        *((name, share, _value(place)) for place, (name, (_, share)) in held_out),
        ("test", split.test, _group),
        ("valid", split.valid, _group),
    ]
    splits: Splits = {}
    left = list(records)
    for name, share, value in steps:
        unit_of = units(left, value, wording)
        sizes = Counter(unit_of)
        quota, filled = share * len(records), 0
        chosen = set()
        for unit in sorted(sizes, key=lambda u: hashlib.sha256(f"{seed}:{u}".encode()).digest()):
            # Rounds to the nearest: a unit goes in if at least half of it fits.
            if filled + sizes[unit] / 2 <= quota:
                chosen.add(unit)
                filled += sizes[unit]
        splits[name] = [r for r, unit in zip(left, unit_of, strict=True) if unit in chosen]
        left = [r for r, unit in zip(left, unit_of, strict=True) if unit not in chosen]
    return {**splits, "train": left}


def _value(place: int) -> Callable[[Record], str]:
    return lambda record: record.values[place]


def _group(record: Record) -> str:
    return record.group


def _check_labelled(splits: Mapping[str, Sequence[Record]], how: str) -> None:
    for name, members in splits.items():
        if not any(record.gold is not None for record in members):
            raise WxbError(
                f"the {name} split has no labelled record: {how};"
                " change `split` of the corpus or bring more"
            )
