"""The mini syntax of the scene templates, `templates/<language>.yaml`.

A scene is a list of sentences about one situation, each given by one or more paraphrases. In them
`{SLOT}` is a labelled value of type `SLOT`, `{slot}` an unlabelled look-alike, a final digit
(`{DATE2}`) asks for another value of the same kind, `[a|b|]` picks one alternative.

A template is one version of a scene: one paraphrase of each sentence, with all its wordings (every
alternative picked). Held-out templates therefore show situations that were seen, in words that were
not, and no wording of theirs has a sibling in training.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import Path

from ruamel.yaml import YAML

from demos.pii.values import LOOKALIKES, TYPES

_TEMPLATES = Path(__file__).parent / "templates"
_SEGMENT = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)|(.)", re.DOTALL)
_PIECE = re.compile(r"\{([A-Za-z]+)([2-9]?)\}|([^{}]+)|(.)", re.DOTALL)


@dataclass(frozen=True)
class Slot:
    """A place for a value: its kind, the digit that tells it from others of the kind, its label."""

    kind: str
    number: str
    type: str | None


Piece = str | Slot
Wording = tuple[Piece, ...]
Paraphrase = tuple[tuple[Wording, ...], ...]  # segments, each with its alternatives
Template = list[list[Wording]]  # for each sentence, the wordings that it may take

VERSIONS = 3  # templates made of one scene: as many as a sentence has paraphrases


def parse(text: str) -> Paraphrase:
    """Read one paraphrase as segments, each a tuple of alternatives made of text and slots.

    Raises ValueError for a stray or nested bracket and for an unknown slot.
    """
    segments = []
    for choice, plain, stray in _SEGMENT.findall(text):
        if stray:
            raise ValueError(f"stray or nested {stray!r} in template: {text}")
        options = (plain,) if plain else tuple(choice.split("|"))
        segments.append(tuple(_pieces(option, text) for option in options))
    return tuple(segments)


def _pieces(option: str, text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for kind, number, literal, stray in _PIECE.findall(option):
        if stray:
            raise ValueError(f"stray {stray!r} in template: {text}")
        if literal:
            pieces.append(literal)
        elif kind in TYPES:
            pieces.append(Slot(kind, number, kind))
        elif kind in LOOKALIKES:
            pieces.append(Slot(kind, number, None))
        else:
            raise ValueError(f"unknown slot {{{kind}{number}}} in template: {text}")
    return tuple(pieces)


def slots(paraphrase: Paraphrase) -> list[Slot]:
    """Every slot that a paraphrase may show, in the order of its text."""
    return [
        piece
        for segment in paraphrase
        for option in segment
        for piece in option
        if isinstance(piece, Slot)
    ]


@cache
def load_scenes(language: str) -> dict[str, list[list[Paraphrase]]]:
    """The sentences of each scene of `language`, each a list of paraphrases.

    Raises ValueError for a malformed one, FileNotFoundError where there are no templates.
    """
    path = _TEMPLATES / f"{language}.yaml"
    scenes = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return {
        scene: [[parse(text) for text in paraphrases] for paraphrases in sentences]
        for scene, sentences in scenes.items()
    }


@cache
def load_templates(language: str) -> dict[str, Template]:
    """The templates of `language`, named `<scene>/<version>`; they share no wording.

    The paraphrases of a sentence go to the versions in turn, another one first at each place, so
    that versions mix styles. What two paraphrases can say belongs to the first. Errors as in
    `load_scenes`.
    """
    templates: dict[str, Template] = {}
    taken: set[str] = set()
    for scene, sentences in load_scenes(language).items():
        versions: list[Template] = [[] for _ in range(VERSIONS)]
        for place, paraphrases in enumerate(sentences):
            for number, paraphrase in enumerate(paraphrases):
                said = {spelled(w): w for w in _wordings(paraphrase) if spelled(w) not in taken}
                taken |= said.keys()
                if said:
                    versions[(number - place) % VERSIONS].append(list(said.values()))
        templates |= {f"{scene}/{number}": own for number, own in enumerate(versions, start=1)}
    return templates


def spelled(wording: Wording) -> str:
    """A wording with its slots by kind: equal for wordings that read the same."""
    return "".join(piece if isinstance(piece, str) else f"{{{piece.kind}}}" for piece in wording)


def _wordings(paraphrase: Paraphrase) -> list[Wording]:
    """What a paraphrase can say, every alternative picked."""
    return [tuple(chain(*picked)) for picked in product(*paraphrase)]
