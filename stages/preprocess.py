"""Clean one corpus and divide it into train, valid and test; nothing is lost silently."""

from collections.abc import Sequence
from pathlib import Path

from stages import run
from wxb.corpora import clean, records
from wxb.corpora.augment import augmented
from wxb.errors import WxbError
from wxb.files import publish, write_json, write_jsonl
from wxb.params import Corpus, Params
from wxb.progress import tracked


def preprocess(files: Sequence[Path], corpus: Corpus, *, seed: int, label: str, out: Path) -> None:
    """Write `{train,valid,test}.parquet`, `rejects.jsonl` and `profile.json` to the folder `out`.

    Every raw record ends in one of them. Raises WxbError for files that cannot be read or hold
    no usable record.
    """
    good: list[records.Record] = []
    rejects: list[records.Reject] = []
    for item in tracked(records.read(files, corpus), label):
        if isinstance(item, records.Reject):
            rejects.append(item)
        elif corpus.languages and item.language not in corpus.languages:
            detail = f"{item.language!r} is not among {corpus.languages}"
            rejects.append(records.Reject(item.id, "other language", detail, item.id))
        else:
            good.append(item)
    if rejects and not good:
        origin, reason, detail, _ = rejects[0]
        raise WxbError(
            f"{files[0]}: all {len(rejects)} records were rejected, the first ({origin}) for"
            f" {reason}: {detail}; compare `fields` of the corpus with the file"
        )
    good, duplicates = clean.without_duplicates(good)
    surplus = good[corpus.max_records :] if corpus.max_records else []
    rejects += duplicates
    rejects += [records.Reject(r.id, "over max_records", "", r.id) for r in surplus]
    splits = clean.split(
        good[: corpus.max_records],
        test=corpus.split.test,
        valid=corpus.split.valid,
        seed=seed,
    )
    profile = clean.profile(splits, rejects)
    if corpus.augment:
        texts = {record.text for record in good}
        copies = augmented(splits["train"], corpus.augment, known=texts, seed=seed)
        splits["train"] += copies
        profile["augmented"] = len(copies)
    out.mkdir()
    for name, members in splits.items():
        clean.write(out / f"{name}.parquet", members)
    write_jsonl(out / "rejects.jsonl", (reject._asdict() for reject in rejects))
    write_json(out / "profile.json", profile)


def main(params: Params, name: str) -> None:
    """Clean the corpus `name` of params.yaml."""
    corpus = params.named("corpora", name)
    files = records.data_files(Path("data/raw", name))
    with publish(f"data/clean/{name}") as (out,):
        preprocess(files, corpus, seed=params.seed, label=f"preprocess@{name}", out=out)


if __name__ == "__main__":
    run("preprocess", main, __doc__)
