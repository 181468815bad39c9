"""Synthetic records with labelled personal data, drawn from templates.

A record is a run of consecutive sentences of one template, filled with the values of one made-up
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
_NEWLINE_SHARE = 0.2  # records with one sentence a line
_CLOSING_MARKS = ".!?。！？"


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield `labelled` records, then `unlabelled` documents, the languages taking turns.

    A record has `id`, `input` (text), `language`, `scene` (called the same in all languages),
    `template` (`<language>/<scene>/<version>`) and `spans`: sorted, disjoint `{"start", "end",
    "type"}` with half-open code point offsets. A labelled record is 1-2 sentences, a few of them
    without any span; an unlabelled one is 1-6 sentences with `spans` None. Each language depends on
    the seed alone, not on the others.

    Raises ValueError for negative counts and for missing, repeated or unknown languages.
    """
    if labelled < 0 or unlabelled < 0:
        raise ValueError(f"counts must not be negative: {labelled=}, {unlabelled=}")
    if not languages or len(set(languages)) < len(languages):
        raise ValueError(f"languages must be given, each once: {list(languages)}")
    if unknown := [language for language in languages if language not in LANGUAGES]:
        raise ValueError(f"unknown languages {unknown}, known are {list(LANGUAGES)}")
    return _records({"l": labelled, "u": unlabelled}, tuple(languages), seed)


def _records(
    counts: dict[str, int], languages: tuple[str, ...], seed: int
) -> Iterator[dict[str, Any]]:
    for kind, count in counts.items():
        rngs = [random.Random(f"{seed}/{language}/{kind}") for language in languages]
        for i in range(count):
            turn, which = divmod(i, len(languages))
            language, rng = languages[which], rngs[which]
            make = _labelled if kind == "l" else _unlabelled
            template, text, spans = make(language, rng)
            yield {
                "id": f"{language}-{kind}-{turn + 1:06}",
                "input": text,
                "spans": spans,
                "language": language,
                "scene": template.partition("/")[0],
                "template": f"{language}/{template}",
            }


_Rendered = tuple[str, str, list[dict[str, Any]] | None]


def _labelled(language: str, rng: random.Random) -> _Rendered:
    if rng.random() < _EMPTY_SHARE:
        template, wording = rng.choice(_lookalikes(language))
        return template, *_render([wording], language, rng)
    while True:
        template, wordings = _run(language, rng.choice((1, 1, 2)), rng)
        text, spans = _render(wordings, language, rng)
        if spans:
            return template, text, spans


def _unlabelled(language: str, rng: random.Random) -> _Rendered:
    template, wordings = _run(language, rng.choice((1, 2, 3, 4, 5, 6, 6)), rng)
    return template, _render(wordings, language, rng)[0], None


@cache
def _lookalikes(language: str) -> list[tuple[str, Wording]]:
    """The wordings without any entity."""
    return [
        (template, wording)
        for template, sentences in load_templates(language).items()
        for wordings in sentences
        for wording in wordings
        if not any(isinstance(piece, Slot) and piece.type for piece in wording)
    ]


def _run(language: str, length: int, rng: random.Random) -> tuple[str, list[Wording]]:
    templates = load_templates(language)
    template = rng.choice(list(templates))
    sentences = templates[template]
    length = min(length, len(sentences))
    first = rng.randrange(len(sentences) - length + 1)
    return template, [rng.choice(wordings) for wordings in sentences[first : first + length]]


def _render(
    wordings: Sequence[Wording], language: str, rng: random.Random
) -> tuple[str, list[dict[str, Any]]]:
    persona = Persona(language, rng)
    space = "" if language == "zh" else " "
    lines = rng.random() < _NEWLINE_SHARE
    text, spans = "", []
    for wording in wordings:
        if text:
            # A form line such as "Age: 31" has no closing mark, so a break has to end it.
            text += "\n" if lines or text[-1] not in _CLOSING_MARKS else space
        for piece in wording:
            start = len(text)
            text += piece if isinstance(piece, str) else persona.value(piece.kind, piece.number)
            if isinstance(piece, Slot) and piece.type:
                spans.append({"start": start, "end": len(text), "type": piece.type})
    return text, spans
