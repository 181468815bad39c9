"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from wxb.params.corpora import Corpus


def words(name: str) -> str:
    """An identifier as words: `wrong_type` is "wrong type"."""
    return name.replace("_", " ")


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def amount(number: float) -> str:
    """A number of parameters: 830, 61.4 k, 1.42 M, 8.03 B."""
    for unit, size in (("B", 1e9), ("M", 1e6)):
        if number >= size:
            return f"{number / size:,.2f} {unit}"
    return f"{number / 1e3:.1f} k" if number >= 1e3 else f"{number:.0f}"


def duration(seconds: float) -> str:
    """Seconds for people: 4.2 s, 3 min 05 s, 2 h 07 min."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def origin(corpus: Corpus) -> str:
    """Where the records of a corpus come from, in words."""
    if corpus.generate:
        languages = ", ".join(corpus.generate.languages)
        return f"{corpus.generate.labelled:,} generated records ({languages})"
    return f"records of {corpus.hub.repository if corpus.hub else corpus.path}"
