"""Export records with their spans as CoNLL columns.

A token is a word or any other character, each with its marks. Scripts without spaces between words
are split by character. Tokens are also split at the edges of gold and predicted spans, so that no
span changes. Only the white space between tokens is lost.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

import regex

from wxb.core.errors import WxbError
from wxb.tasks.exports import Records

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"  # the last: Thai, Lao
_MARKS = r"\p{M}\u200C\u200D"  # joiners, too, of letters and emoji
# \x1c-\x1f are white space in Python, not in Unicode.
_TOKEN = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{N}}{_MARKS}]--[{_UNSPACED}]]*"
    rf"|[^\s\x1C-\x1F][{_MARKS}]*"
)


def conll(records: Records) -> Iterator[str]:
    """Yield each record as one string of lines `token<TAB>tag` (IOB2), with a blank line between.

    An experiment has two columns of tags for conlleval: gold, then predicted. Raises WxbError for a
    type with white space, which ends the tag for most readers.
    """
    for index, record in enumerate(records):
        text, columns = record["input"], [record[c] for c in ("gold", "predicted") if c in record]
        edges = {edge for spans in columns for span in spans for edge in span[:2]}
        for match in _TOKEN.finditer(text):
            edges |= {*match.span()}
        tokens = [(a, b) for a, b in pairwise(sorted(edges)) if not text[a:b].isspace()]
        starts, tags = [start for start, _ in tokens], [["O"] * len(tokens) for _ in columns]
        for column, spans in zip(tags, columns, strict=True):
            for start, end, kind in spans:
                if kind.split() != [kind]:
                    raise WxbError(
                        f"record {record['id']!r}: type {kind!r} has white space; rename it with"
                        " `labels`, or export as jsonl"
                    )
                first, stop = bisect_left(starts, start), bisect_left(starts, end)
                column[first:stop] = [f"B-{kind}", *[f"I-{kind}"] * (stop - first - 1)]
        words = (text[start:end] for start, end in tokens)
        lines = "".join("\t".join(row) + "\n" for row in zip(words, *tags, strict=True))
        # U+FEFF at the start of a file would be read as its byte order mark.
        yield "\n" * (index > 0 or lines.startswith("\ufeff")) + lines


FORMATS = {"conll": conll}
