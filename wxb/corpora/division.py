"""Divide records into splits that share no text, no wording and no group."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter

from wxb.core.errors import WxbError, counted
from wxb.core.params.corpora import Split
from wxb.corpora.near import units
from wxb.corpora.records import DUPLICATE, NEAR_DUPLICATE, SURPLUS, Record, Reject

CONFLICT = "duplicate text, other label"  # a reason of rejects
Splits = dict[str, list[Record]]
_group: Callable[[Record], str] = attrgetter("group")


def divide(
    records: Iterable[Record], split: Split, *, max_records: int | None, seed: int
) -> tuple[Splits, list[Reject]]:
    """Divide records into train, valid and test sets; duplicates and surplus records are rejected.

    If files define train and valid, train keeps the first `max_records` records, and other sets the
    first `split.max_records`. Else `max_records` are drawn by the seed, as a file may list one
    class after the other, and divided without stratification: records of a group, or with texts
    that differ only in digits and case, stay in one set. Test sets that files define keep their
    duplicates, as published scores do. Other records are rejected if they have the text or wording
    of one of those, and so are training records of files that repeat a validation record.
    """
    members = defaultdict[str | None, list[Record]](list)
    for record in records:
        members[record.split].append(record)
    splits = {name: members[name] for name in split.test_sets if name in split.file_patterns}
    tests = [*chain(*splits.values())]
    if split.files:
        splits["valid"], rejects = drop_duplicates(members["valid"], tests)
        held_out = [*tests, *splits["valid"]]
        splits["train"], duplicates = drop_duplicates(members["train"], held_out)
        splits["train"], surplus = limit_records(splits["train"], max_records)
        rejects += [*duplicates, *surplus]
    else:
        unique, rejects = drop_duplicates(members[None], tests)
        unique, surplus = limit_records(unique, max_records, seed)
        splits |= _divide_by_share(unique, split, seed)
        rejects += surplus
    for name, number in (split.max_records or {}).items():
        splits[name], surplus = limit_records(splits[name], number)
        rejects += surplus
    return {name: splits[name] for name in ("train", "valid", *split.test_sets)}, rejects


def require_labelled(splits: Splits, rejects: Sequence[Reject], split: Split) -> None:
    """Raise WxbError if a split of `divide`, which also returned `rejects`, has no labelled record.

    The message has the cause: rejects, files, or the size of the parts that are divided.
    """
    for name, records in splits.items():
        if any(record.gold is not None for record in records):
            continue
        rest = records if name == "valid" and split.files else splits["train"]
        if not rest and rejects:  # as with equal files
            first = f"{rejects[0].origin}: {rejects[0].reason}, {rejects[0].detail}"
            cause = f"rejected {counted(len(rejects), 'records')}, such as {first}"
        elif files := split.file_patterns.get(name):
            cause = f"its files ({', '.join(files)}) have none, so leave them out"
        else:
            divided = [members for n, members in splits.items() if n not in split.file_patterns]
            cause = _describe_parts([*chain(*divided)])
        raise WxbError(
            f"the {name} split has no labelled record: {cause};"
            " add other records, or change `split` of the corpus"
        )


def _describe_parts(records: Sequence[Record]) -> str:
    """Describe for an error how many parts are divided as a whole, and the size of the smallest."""
    sizes = Counter(units(records, _group))
    smallest = min(sizes.values(), default=0)
    share = f"{smallest / max(1, len(records)):.2g}"
    return (
        f"{counted(len(records), 'records')} in {counted(len(sizes), 'parts')} to divide, as"
        " those of one group, or that differ only in digits and case, stay together; a split"
        f" takes a part if half of it fits, and the smallest has {smallest}, a share of {share}"
    )


def regroup_test_sets(
    splits: Splits, split: Split, gold_key: str | None = None
) -> tuple[Splits, dict[str, str | None]]:
    """Replace the groups of test records by those of intervals and tests.

    A test set that holds out values of a field has a group for each value, as its score is about
    other values. Values that share a group or a wording count as one. Any other test set, and one
    that holds out a single value, has a group for each value of `gold_key` in gold. Records without
    such a value keep their group; without `split.by` and files, those that share a wording are one.
    Also returns the field of the groups by test set, None if groups have no field.
    """
    index_of = {name: index for index, name in enumerate(split.held_out_fields)}
    grouped, fields = dict(splits), {}
    for name in split.test_sets:
        members, fields[name] = splits[name], split.by
        groups = [record.group for record in members]
        if split.by is None and not split.files:
            groups = units(members, _group)
            sizes = Counter(groups)
            # A record whose group is its text would be its own group, see `Scorer.rows`.
            texts = {r.input for r in members if sizes[r.input] > 1}
            groups = [f"near {group}" if group in texts else group for group in groups]
        values = [r.gold[gold_key] if gold_key and r.gold else None for r in members]
        if any(value is not None for value in values):
            fields[name] = gold_key
            groups = [g if v is None else v for g, v in zip(groups, values, strict=True)]
        if name in index_of:
            held_out = units(members, partial(_held_out_value, index_of[name]))
            if len({*held_out}) > 1:
                fields[name], groups = split.held_out_fields[name][0], held_out
        grouped[name] = [replace(r, group=g) for r, g in zip(members, groups, strict=True)]
    return grouped, fields


def drop_duplicates(
    records: Iterable[Record], held_out: Sequence[Record] = ()
) -> tuple[list[Record], list[Reject]]:
    """Keep the first labelled record of each input as written, else the first; reject all others.

    Also rejects records with the input or the wording of a held-out record.
    """
    held_out_texts = {record.input: record for record in held_out}
    unique: dict[str, Record] = {}
    rejects = []
    for record in records:
        other = held_out_texts.get(record.input) or unique.get(record.input)
        if other is None:
            unique[record.input] = record
            continue
        is_held_out = record.input in held_out_texts
        if not is_held_out and other.gold is None and record.gold is not None:
            unique[record.input] = record
            record, other = other, record
        differs = None not in (record.gold, other.gold) and record.gold != other.gold
        detail = f"same text as {other.id}"
        if differs:
            detail += f", which is {other.gold!r:.60}; this one is {record.gold!r:.60}"
        reason = CONFLICT if differs else DUPLICATE
        rejects.append(Reject(record.id, reason, detail, record.id))
    held_out_wordings = {record.wording: record for record in reversed(held_out) if record.wording}
    for record in [*unique.values()] if held_out_wordings else []:
        if other := held_out_wordings.get(record.wording):
            del unique[record.input]
            detail = f"same wording as {other.id}"
            rejects.append(Reject(record.id, NEAR_DUPLICATE, detail, record.id))
    return list(unique.values()), rejects


def limit_records(
    records: list[Record], limit: int | None, seed: int | None = None
) -> tuple[list[Record], list[Reject]]:
    """Keep the first `limit` records or, with a seed, a sample in their order; None keeps all."""
    shuffled = records
    if seed is not None:
        shuffled = sorted(records, key=lambda record: _shuffle_key(seed, record.input))
    surplus = {record.id for record in shuffled[limit:]} if limit else {}
    kept = [record for record in records if record.id not in surplus]
    return kept, [Reject(r.id, SURPLUS, "", r.id) for r in records if r.id in surplus]


def _divide_by_share(records: Sequence[Record], split: Split, seed: int) -> Splits:
    """Divide records by the shares of `split`, so that splits share no group and no wording.

    Further test sets come first, by whole values of a field, then test, then valid. Units of
    records that must stay together are sorted by a hash of seed and name. In this order, a split
    takes each unit of which at least half fits in its share; train gets the rest. Any may be empty.
    """
    held_out = enumerate(split.held_out_fields.items())
    steps: list[tuple[str, float, Callable[[Record], str]]] = [
        *((name, share, partial(_held_out_value, i)) for i, (name, (_, share)) in held_out),
        ("test", split.test or 0, _group),
        ("valid", split.valid or 0, _group),
    ]
    splits: Splits = {}
    left = list(records)
    for name, share, value in steps:
        unit_of = units(left, value)
        sizes = Counter(unit_of)
        quota, count = share * len(records), 0
        split_units = set()
        for unit in sorted(sizes, key=partial(_shuffle_key, seed)):
            if count + sizes[unit] / 2 <= quota:
                split_units.add(unit)
                count += sizes[unit]
        splits[name] = [r for r, unit in zip(left, unit_of, strict=True) if unit in split_units]
        left = [r for r, unit in zip(left, unit_of, strict=True) if unit not in split_units]
    return {**splits, "train": left}


def _shuffle_key(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()


def _held_out_value(field_index: int, record: Record) -> str:
    return record.values[field_index]
