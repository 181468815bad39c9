"""Read the scene templates, `templates/<language>/*.yaml`.

A scene is a list of sentences about one situation. Each sentence has several paraphrases. In them,
`{SLOT}` is a labelled value of type `SLOT`, `{slot}` an unlabelled look-alike, a final digit
(`{DATE2}`) another value of the same kind, and `[a|b|]` one of several alternatives.

A template is one version of a scene: one paraphrase of each sentence, with all its wordings (every
choice of alternatives). So held-out templates have situations of the training data in other words,
and none of their wordings is similar to one in training.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import Path

from wxb.core.params import read_yaml

_TEMPLATES = Path(__file__).parent / "templates"
_SEGMENT = re.compile(r"\[([^\[\]]*)\]|([^\[]+|\[)")
_PIECE = re.compile(r"\{([A-Za-z]+)([2-9]?)\}|([^{]+|\{)")


@dataclass(frozen=True)
class Slot:
    """A placeholder for a value of a kind, whose name is a label if it is in upper case."""

    kind: str
    digit: str  # distinguishes values of one kind

    @property
    def is_labelled(self) -> bool:
        """Whether its value is labelled with its kind."""
        return self.kind.isupper()


Piece = str | Slot
Wording = tuple[Piece, ...]
Paraphrase = tuple[tuple[Wording, ...], ...]  # segments, each with its alternatives
Template = list[list[Wording]]  # the wordings of each sentence

VERSIONS = 3  # templates of one scene: as many as a sentence has paraphrases


def parse(text: str) -> Paraphrase:
    """Parse a paraphrase into segments, each a tuple of alternatives of text and slots."""
    return tuple(
        tuple(map(_pieces, [plain] if plain else choice.split("|")))
        for choice, plain in _SEGMENT.findall(text)
    )


def _pieces(option: str) -> tuple[Piece, ...]:
    return tuple(literal or Slot(kind, digit) for kind, digit, literal in _PIECE.findall(option))


@cache
def load_scenes(language: str) -> dict[str, list[list[Paraphrase]]]:
    """Read the scenes of `language`: sentences, each a list of paraphrases; cached.

    Raises ValueError for a scene that two files have, FileNotFoundError for an unknown language.
    """
    scenes: dict[str, list[list[Paraphrase]]] = {}
    for path in sorted((_TEMPLATES / language).iterdir()):
        content = read_yaml(path)
        if repeated := scenes.keys() & content.keys():
            raise ValueError(f"{path}: another file has {sorted(repeated)}")
        for scene, sentences in content.items():
            scenes[scene] = [[parse(text) for text in paraphrases] for paraphrases in sentences]
    return scenes


@cache
def load_templates(language: str) -> dict[str, Template]:
    """The templates of `language` by `<scene>/<version>`, without common wordings; cached.

    The paraphrases of a sentence are assigned to the versions in turn, starting with another
    version for each sentence, so that versions mix styles. A wording of two paraphrases belongs to
    the first. Raises as `load_scenes` does.
    """
    templates: dict[str, Template] = {}
    assigned: set[str] = set()
    for scene, sentences in load_scenes(language).items():
        versions: list[Template] = [[] for _ in range(VERSIONS)]
        for position, paraphrases in enumerate(sentences):
            for index, paraphrase in enumerate(paraphrases):
                by_text = {wording_text(w): w for w in _wordings(paraphrase)}
                new = {text: w for text, w in by_text.items() if text not in assigned}
                assigned |= new.keys()
                if new:
                    versions[(index - position) % VERSIONS].append(list(new.values()))
        templates |= {f"{scene}/{n}": version for n, version in enumerate(versions, start=1)}
    return templates


def wording_text(wording: Wording) -> str:
    """The text of a wording with its slots by kind, without digits."""
    return "".join(piece if isinstance(piece, str) else f"{{{piece.kind}}}" for piece in wording)


def _wordings(paraphrase: Paraphrase) -> list[Wording]:
    """All wordings of a paraphrase: every choice of alternatives."""
    return [tuple(chain(*choice)) for choice in product(*paraphrase)]
