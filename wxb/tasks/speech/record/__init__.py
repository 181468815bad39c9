"""The gold of recordings, and the normalization of transcripts.

Gold is the transcript, the speaker, the names of the normalization RULES, and measures.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import pyarrow as pa
import regex

from wxb.core.errors import WxbError
from wxb.corpora.records import Labelling

# Spaces beside Chinese characters and between kana, which only some transcripts have.
_KANA = r"[\p{Hiragana}\p{Katakana}\u30fc]"
UNSPOKEN = regex.compile(rf"(?<=\p{{Han}})\s+|\s+(?=\p{{Han}})|(?<={_KANA})\s+(?={_KANA})")


class Measures(NamedTuple):
    """Numbers that `gold` keeps of a recording."""

    seconds: float  # after trimming
    trimmed: float  # seconds of silence removed
    loudness: float  # root mean square in dB of full scale, after trimming
    clipped: float  # share of samples at full scale, before trimming
    snr: float  # dB between loud and quiet moments, before trimming


LABELLING = Labelling(
    pa.struct(
        [
            *((name, pa.string()) for name in ("text", "speaker", "rules")),
            *((name, pa.float64()) for name in Measures._fields),
        ]
    )
)


def normalize(text: str, rules: str) -> str:
    """The text after each of the named RULES, which are separated by spaces, with single spaces."""
    for rule in rules.split():
        text = RULES[rule](text)
    return " ".join(text.split())


def words(text: str) -> list[str]:
    """The words of a text, split at white space; each Chinese character is a word of its own."""
    spaced = (f" {c} " if unicodedata.name(c, "").startswith("CJK ") else c for c in text)
    return "".join(spaced).split()


def _replace_punctuation(text: str) -> str:
    """Replace punctuation and symbols by spaces; delete apostrophes, and UNSPOKEN spaces."""
    text = re.sub(r"['’\u02bc]", "", text)  # U+02bc, as in Ukrainian, is no punctuation
    text = "".join(" " if unicodedata.category(c)[0] in "PS" else c for c in text)
    return UNSPOKEN.sub("", text)


@cache
def _simplifier() -> Any:
    """OpenCC from traditional to simplified Chinese. Raises WxbError if not installed."""
    try:
        import opencc
    except ModuleNotFoundError:
        fault = "normalization.simplified needs the package opencc"
        raise WxbError(f"{fault}; install it: pip install opencc") from None
    return opencc.OpenCC("t2s")


RULES: dict[str, Callable[[str], str]] = {
    "width": partial(unicodedata.normalize, "NFKC"),
    "case": str.casefold,
    "punctuation": _replace_punctuation,
    "simplified": lambda text: str(_simplifier().convert(text)),
}
