"""`wxb new corpus` for pairs of texts, also in lines of Tatoeba, or in a file for each language."""

from dataclasses import replace

from wxb.tasks import recognition
from wxb.tasks.recognition import SHARES, Block, FieldNames, Files, Flags

TATOEBA = ("source", "target", "license")  # the columns of manythings.org


def recognize(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block for pairs in records, exports of Tatoeba or parallel files; None for others.

    Parallel files, such as `train.en` and `train.zh`, one in each of two languages for every name,
    have a line for each text. --input and --gold name other suffixes.
    """
    if files.has_fields:
        return field_names.recognize(files, flags)
    cells = next(files.nonblank_lines(files.members[0])).split("\t")
    if len(cells) == len(TATOEBA) and cells[-1].startswith("CC-BY"):
        return field_names.recognize(replace(files, columns=TATOEBA), flags)
    suffixes = sorted({file.suffix[1:] for file in files.members})
    pair = recognition.matching_fields(suffixes, field_names.pair)
    if {"input", "gold"} <= flags.keys():
        pair = [flags["input"], flags["gold"]]
    stems = [{f.with_suffix("") for f in files.members if f.suffix[1:] == name} for name in pair]
    if len(pair) != 2 or stems[0] != stems[1] or not stems[0]:
        return None
    fields = {"input": pair[0], "target": pair[1]}
    return {"parallel": pair, "fields": fields, "split": SHARES}
