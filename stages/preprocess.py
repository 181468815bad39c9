"""Clean a corpus and divide it into train, valid and test sets; rejected records are listed."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, remove, write_json, write_jsonl
from wxb.core.params import Params
from wxb.core.params.corpora import Corpus
from wxb.core.progress import Progress
from wxb.corpora import clean
from wxb.corpora.division import divide, regroup_test_sets, require_labelled
from wxb.corpora.profile import profile
from wxb.corpora.reading import read_prepared, summarize_rejects
from wxb.corpora.records import Record
from wxb.runtime.command import run


def preprocess(
    folder: Path, corpus: Corpus, *, seed: int, caption: str, out: Path, home: Path | None = None
) -> None:
    """Read the raw files in `folder`, and write all splits, rejects and statistics to `out`.

    Writes the Parquet file of each split (test sets regrouped), any input files in a folder beside
    it, `rejects.jsonl`, `profile.json` and the labels; the final path of `out` is `home`. Each raw
    record ends in a split or in the rejects. Prints progress, unread files and counts of rejects.
    Raises WxbError for unreadable files, if all are rejected, and for splits with missing or
    invalid labels; if missing, it writes rejects to logs/.
    """
    task, labelling = tasks.get(corpus.task).reading, tasks.get(corpus.task).record
    home, inputs = home or out, out / ".inputs"
    records, rejects, unread_fields, unread_files = read_prepared(
        folder, corpus, task, out=inputs, home=home, caption=caption
    )
    if unread_files:
        print(f"{caption}: not read: {', '.join(unread_files)}", file=Progress.console)
    if rejects and not records:
        raise WxbError(f"{folder}: all {summarize_rejects(rejects, corpus)}")
    splits, surplus = divide(records, corpus.split, max_records=corpus.max_records, seed=seed)
    rejects += surplus
    try:
        require_labelled(splits, surplus, corpus.split)
    except WxbError as error:
        if not rejects:
            raise
        listed = paths.log(f"{caption}.rejects").with_suffix(".jsonl")
        write_jsonl(listed, (reject._asdict() for reject in rejects))
        summary = summarize_rejects(rejects, corpus)
        raise WxbError(f"{folder}: {summary} ({listed}). Without them, {error}") from None
    task.check_labels(splits, corpus.split)
    statistics = profile(splits, rejects, task)
    statistics["fields_not_read"] = unread_fields
    splits, statistics["test_groups"] = regroup_test_sets(splits, corpus.split, task.TEST_GROUP)
    del records  # `_drain` frees each record that is written
    for name in [*splits]:
        file = clean.split_file(out, name)
        remaining = _drain(splits.pop(name))
        if task.NAMED_FILES:
            remaining = _move_inputs(remaining, inputs, file.with_suffix(""), out, home)
        clean.write(file, remaining, labelling)
    remove(inputs)
    write_json(out / paths.TRAINING_DATA / paths.LABELS, statistics["labels"])
    write_jsonl(out / "rejects.jsonl", (reject._asdict() for reject in rejects))
    write_json(out / paths.PROFILE, statistics)
    if rejects:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in statistics["rejects"].items())
        share = f"{len(rejects):,} of {statistics['records']['raw']:,} records rejected"
        print(f"{caption}: {share} (rejects.jsonl): {counts}", file=Progress.console)


def _drain(records: list[Record]) -> Iterator[Record]:
    """Yield the records in order, and empty the list, which frees each record after its use."""
    records.reverse()
    while records:
        yield records.pop()


def _move_inputs(
    records: Iterable[Record], inputs: Path, folder: Path, out: Path, home: Path
) -> Iterator[Record]:
    """Yield the records, their files moved to the `folder` of their split, numbered from 0.

    So the files of train and valid, and their names, do not change with those of a test set.
    """
    folder.mkdir(parents=True)
    for index, record in enumerate(records):
        source = inputs / Path(record.input).relative_to(home)
        target = source.replace(folder / f"{index:06}{source.suffix}")
        yield replace(record, input=(home / target.relative_to(out)).as_posix())


def main(params: Params, name: str) -> None:
    """Write the splits, labels, rejects and profile of the corpus `name`."""
    corpus = params.block("corpora", name)
    home, caption = paths.CLEAN / name, f"preprocess@{name}"
    with publish(home) as (out,):
        preprocess(paths.RAW / name, corpus, seed=params.seed, caption=caption, out=out, home=home)


if __name__ == "__main__":
    run("preprocess", main, __doc__)
