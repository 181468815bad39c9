"""Generate synthetic records with labelled personal data from templates.

A record is a few consecutive sentences of one template, filled with the values of one fictional
person.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from demos.pii.persona import Persona
from demos.pii.scenes import Slot, Wording, load_templates
from demos.pii.values import LANGUAGES

_EMPTY_SHARE = 0.08  # labelled records without any span
_NEWLINE_SHARE = 0.2  # records with one sentence per line
_CLOSING_MARKS = ".!?。！？"


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield `labelled` records, then `unlabelled` documents, with the languages in turn.

    A record has `id`, `input` (text), `language`, `scene` (the same name in all languages),
    `template` (`<language>/<scene>/<version>`) and `spans`: sorted, disjoint `{"start", "end",
    "type"}` with half-open code point offsets. A labelled record has 1-2 sentences; a few of these
    records have no span. An unlabelled one has 1-6 sentences, and `spans` is None. The records of a
    language depend on the seed, not on the other languages.

    Raises ValueError for missing, repeated or unknown languages.
    """
    if not languages or len(set(languages)) < len(languages):
        raise ValueError(f"expected one or more languages, each once; got {list(languages)}")
    if unknown := [language for language in languages if language not in LANGUAGES]:
        raise ValueError(f"unknown languages {unknown}; expected some of {list(LANGUAGES)}")
    return _records({"l": labelled, "u": unlabelled}, tuple(languages), seed)


def _records(
    counts: dict[str, int], languages: tuple[str, ...], seed: int
) -> Iterator[dict[str, Any]]:
    for kind, count in counts.items():
        rngs = [random.Random(f"{seed}/{language}/{kind}") for language in languages]
        for index in range(count):
            round_index, position = divmod(index, len(languages))
            language, rng = languages[position], rngs[position]
            draw = _draw_labelled if kind == "l" else _draw_unlabelled
            template, text, spans = draw(language, rng)
            yield {
                "id": f"{language}-{kind}-{round_index + 1:06}",
                "input": text,
                "spans": spans,
                "language": language,
                "scene": template.partition("/")[0],
                "template": f"{language}/{template}",
            }


_Drawn = tuple[str, str, list[dict[str, Any]] | None]  # template, text, spans


def _draw_labelled(language: str, rng: random.Random) -> _Drawn:
    if rng.random() < _EMPTY_SHARE:
        template, wording = rng.choice(_lookalikes(language))
        return template, *_render([wording], language, rng)
    while True:
        template, wordings = _draw_wordings(language, rng.choice((1, 1, 2)), rng)
        text, spans = _render(wordings, language, rng)
        if spans:
            return template, text, spans


def _draw_unlabelled(language: str, rng: random.Random) -> _Drawn:
    template, wordings = _draw_wordings(language, rng.choice((1, 2, 3, 4, 5, 6, 6)), rng)
    return template, _render(wordings, language, rng)[0], None


@cache
def _lookalikes(language: str) -> list[tuple[str, Wording]]:
    """The templates and wordings of sentences without labelled slots."""
    return [
        (template, wording)
        for template, sentences in load_templates(language).items()
        for wordings in sentences
        for wording in wordings
        if not any(isinstance(piece, Slot) and piece.is_labelled for piece in wording)
    ]


def _draw_wordings(language: str, length: int, rng: random.Random) -> tuple[str, list[Wording]]:
    """A template, and one wording of each of up to `length` consecutive sentences."""
    templates = load_templates(language)
    template = rng.choice(list(templates))
    sentences = templates[template]
    length = min(length, len(sentences))
    first = rng.randrange(len(sentences) - length + 1)
    return template, [rng.choice(wordings) for wordings in sentences[first : first + length]]


def _render(
    wordings: Sequence[Wording], language: str, rng: random.Random
) -> tuple[str, list[dict[str, Any]]]:
    """The text and the spans of wordings, filled with the values of a new persona."""
    persona = Persona(language, rng)
    space = "" if language == "zh" else " "
    has_lines = rng.random() < _NEWLINE_SHARE
    text, spans = "", []
    for wording in wordings:
        if text:
            # A form line such as "Age: 31" has no closing mark, so it ends with a line break.
            text += "\n" if has_lines or text[-1] not in _CLOSING_MARKS else space
        for piece in wording:
            start = len(text)
            text += piece if isinstance(piece, str) else persona.value(piece.kind, piece.digit)
            if isinstance(piece, Slot) and piece.is_labelled:
                spans.append({"start": start, "end": len(text), "type": piece.kind})
    return text, spans
