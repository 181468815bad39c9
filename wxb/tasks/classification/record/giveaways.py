"""What in a news text tells who published it, and so its class, whatever it says.

Collections of fake and real news take each from a few publishers. A model that may read these
marks learns who writes, which says nothing of news from elsewhere.
"""

from __future__ import annotations

import regex

# Where a text begins: LONDON (Reuters) -, WASHINGTON/MOSCOW (AP) —, (Reuters) -
_DATELINE = r"""
    \A\W{0,3}
    (?:\p{Lu}[\p{L}.'’/,\s-]{0,60}?\s)?  # a place, or several
    (?:\(\s*(?:Reuters|AP|AFP|UPI)\s*\)(?:\s*[-–—:]+)?  # the agency
      | \(\s*\p{Lu}[\p{L}.&\s]{1,30}\)\s*[-–—]+)        # or another, before a dash
"""
_ANYWHERE = r"""
    \(\s*(?:Reuters|AP|AFP|UPI)\s*\)
  | \b(?:Reuters|Associated\ Press|Agence\ France-Presse)\b
  | \b(?:featured|feature|top|main)\ (?:image|photo|picture)s?\s+(?:via|by|from|courtesy\ of)
    [^\n.]{0,80}
  | \b(?:photo|image|screenshot|screengrab|video)\s+(?:via|by|credit|courtesy)\b[^\n.]{0,80}
  | \bvia:?\s+[\p{L}\d]+(?:\.[\p{L}\d]+)*\.(?:com|org|net)\b\S*
  | (?:https?://|www\.)\S+
  | \bpic\.twitter\.com/\S+
  | (?<!\w)@\w{2,}
  | \[(?:video|image|photo|watch|tweets?)\]
  | \((?:video|image|photo|watch|tweets?)\)
  | \b21st\ Century\ Wire\b | \b21WIRE\b
  | \bread\ more(?:\ at\b|:)[^\n]{0,80} | ^read\ more\b[^\n]{0,80}
"""
_PATTERN = regex.compile(f"{_DATELINE}|(?i:{_ANYWHERE})", regex.VERBOSE | regex.MULTILINE)


def giveaways(text: str) -> list[tuple[int, int]]:
    """The stretches of a text (start, end) that tell its publisher, sorted and disjoint."""
    return [match.span() for match in _PATTERN.finditer(text)]
