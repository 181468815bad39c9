"""Format numbers, names and tables; the decimals of a score are those of its task's `Metric`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment
from wxb.metrics import Metric

SHARE = Metric("share", "share")  # format of a number in [0, 1]


class Cell(str):
    """The text of a cell, with what only pages show: a number to sort by, a shade and a note.

    `shade` is a percentage of colour; a negative one has the second colour.
    """

    value: float | None
    shade: int
    note: str

    def __new__(
        cls, text: str, value: float | None = None, *, shade: int = 0, note: str = ""
    ) -> Self:
        """A cell that equals its text."""
        cell = super().__new__(cls, text)
        cell.value, cell.shade, cell.note = value, shade, note
        return cell


class Table(NamedTuple):
    """A table for terminals, Markdown and pages; each row begins with a name."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Lines of Markdown without the caption; all columns but the first are aligned right."""
        ruled = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        cells = ([cell.replace("|", r"\|") for cell in row] for row in ruled)
        return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def words(name: str) -> str:
    """An identifier as words: `wrong_type` is "wrong type"."""
    return name.replace("_", " ")


def setting(value: object) -> str:
    """A setting as params.yaml may write it: text without quotes, others as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(names: Sequence[str]) -> str:
    """Names joined for a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def amount(count: float) -> str:
    """A large count, such as of parameters: 830, 61.4 k, 1000.0 k, 1.42 M, 123.45 M, 8.03 B."""
    for unit, factor in (("B", 1e9), ("M", 1e6)):
        if count >= factor:
            return f"{count / factor:,.2f} {unit}"
    return f"{count / 1e3:.1f} k" if count >= 1e3 else f"{count:.0f}"


def size(n_bytes: float) -> str:
    """A number of bytes: 830 B, 2.0 KiB, 1.5 GiB."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:,.1f} {unit}"
    return f"{n_bytes:.0f} B"


def duration(seconds: float) -> str:
    """A time span: 4.2 s, 3 min 05 s, 2 h 07 min, 3 d 04 h."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def rounded(value: float, metric: Metric = SHARE) -> str:
    """A value of a metric, or a difference of two, with the metric's decimals; never -0.000."""
    return f"{value:z.{metric.decimals}f}"


def p_value(value: float) -> str:
    """A p value with three decimals (four if it would round down to 0.05), or "< 0.001"."""
    return f"{value:.{4 if 0.05 < value < 0.0505 else 3}f}" if value >= 0.001 else "< 0.001"


def signed(difference: float, metric: Metric = SHARE) -> str:
    """A difference of two values with its sign, or without a sign if it rounds to 0."""
    text = f"{difference:+.{metric.decimals}f}"
    return text if float(text) else rounded(difference, metric)


def interval(ends: Mapping[str, float], metric: Metric = SHARE) -> str:
    """An interval with the keys `low` and `high`: 0.912–0.947, -0.120 to 0.300."""
    to = " to " if ends["low"] < 0 else "–"
    return f"{rounded(ends['low'], metric)}{to}{rounded(ends['high'], metric)}"


def with_interval(estimate: Mapping[str, float], metric: Metric = SHARE, spread: str = "") -> str:
    """A value with its interval: 0.930 (0.912–0.947). `spread`, if any, follows the value."""
    return f"{rounded(estimate['value'], metric)}{spread} ({interval(estimate, metric)})"


def origin(corpus: Corpus) -> str:
    """Labelled records, as "500 generated records (en)"; else "records of" a path or repository."""
    if corpus.generate:
        languages = ", ".join(corpus.generate.languages)
        return f"{corpus.generate.labelled:,} generated records ({languages})"
    return f"records of {corpus.hub.repository if corpus.hub else without_folders(corpus.path)}"


def without_folders(path: str) -> str:
    """The last part of an absolute path, whose folders may be private; other paths unchanged."""
    return Path(path).name if Path(path).is_absolute() else path


def variant_text(experiment: Experiment) -> str:
    """Tuning and traits, such as "LoRA r 4", a pooling or a baseline's rule; may be empty."""
    tuning = experiment.tuning
    lora = f"{'QLoRA' if tuning.four_bit else 'LoRA'} r {tuning.lora.r}" if tuning.lora else ""
    frozen = "frozen" if tuning.frozen else ""
    scale = " by padded length" if tuning.neftune_padded else ""
    noise = f"NEFTune {tuning.neftune_alpha:g}{scale}" if tuning.neftune_alpha else ""
    return ", ".join(filter(None, [lora, frozen, *experiment.traits, noise]))
