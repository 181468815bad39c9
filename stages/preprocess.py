"""Clean one corpus and divide it into train, valid and test sets; nothing is lost silently."""

from collections import Counter
from pathlib import Path

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json, write_jsonl
from wxb.core.params import Params
from wxb.core.params.corpora import Corpus
from wxb.core.progress import Progress
from wxb.corpora import clean, reading
from wxb.corpora.division import divided
from wxb.corpora.labelling import Labelling
from wxb.corpora.profile import profile
from wxb.corpora.reading import Reading
from wxb.corpora.records import Record, Reject
from wxb.runtime.command import run


def preprocess(
    folder: Path,
    corpus: Corpus,
    task: Reading,
    labelling: Labelling,
    *,
    seed: int,
    label: str,
    out: Path,
    home: Path | None = None,
) -> None:
    """Write each `<split>.parquet`, `rejects.jsonl` and `profile.json` to the folder `out`.

    Inputs that are files are written there, too; `home` is where it will lie, if elsewhere.

    Every record of the raw files in `folder` ends in one of them. Raises WxbError for files that
    cannot be read or hold no usable record.
    """
    good: list[Record] = []
    rejects: list[Reject] = []
    raw = reading.read(folder, corpus, task)
    for item in task.prepared(raw, corpus, folder=folder, out=out, home=home or out, label=label):
        if isinstance(item, Reject):
            rejects.append(item)
        elif corpus.languages and item.language not in corpus.languages:
            detail = f"{item.language!r} is not among {corpus.languages}"
            rejects.append(Reject(item.id, "other language", detail, item.id))
        else:
            good.append(item)
    if rejects and not good:
        ((usual, alike),) = Counter(reject.reason for reject in rejects).most_common(1)
        origin, reason, detail, _ = next(r for r in rejects if r.reason == usual)
        raise WxbError(
            f"{folder}: all {len(rejects)} records were rejected, {alike} like this one ({origin})"
            f" for {reason}: {detail}; {corpus.advice(reason)}"
        )
    splits, lost = divided(good, corpus.split, task.wording, limit=corpus.max_records, seed=seed)
    rejects += lost
    about = profile(splits, rejects, task)
    known = {record.input for record in good}
    copies = task.augmented(splits["train"], corpus, known=known, seed=seed)
    if copies is not None:
        splits["train"] += copies
        about["augmented"] = len(copies)
    out.mkdir(exist_ok=True)
    for name, members in splits.items():
        clean.write(out / f"{name}.parquet", members, labelling)
    write_jsonl(out / "rejects.jsonl", (reject._asdict() for reject in rejects))
    write_json(out / paths.PROFILE, about)
    if rejects:
        why = ", ".join(f"{count:,} {reason}" for reason, count in about["rejects"].items())
        records = f"{len(rejects):,} of {about['records']['raw']:,} records rejected"
        print(f"{label}: {records} (rejects.jsonl): {why}", file=Progress.console)


def main(params: Params, name: str) -> None:
    """Clean the corpus `name` of params.yaml."""
    corpus = params.named("corpora", name)
    task = tasks.get(corpus.task)
    folder, label = paths.raw(name), f"preprocess@{name}"
    home = paths.clean(name)
    with publish(home) as (out,):
        preprocess(
            folder,
            corpus,
            task.reading,
            task.record,
            seed=params.seed,
            label=label,
            out=out,
            home=home,
        )


if __name__ == "__main__":
    run("preprocess", main, __doc__)
