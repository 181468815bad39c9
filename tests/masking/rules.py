"""A recogniser by rules, for tests in which it does not matter what finds the spans."""

import re
from typing import NamedTuple

from wxb.tasks.ner.record.spans import Span

RULES = {
    "EMAIL": (r"\w+@\w+\.org", 0.95),
    "NAME": (r"[A-Z][a-zé]+", 0.9),
    "AGE": (r"\d+", 0.5),
}
PATTERN = re.compile("|".join(f"(?P<{type_}>{rule})" for type_, (rule, _) in RULES.items()))


class Found(NamedTuple):
    """As `wxb.tasks.ner.predictor.ScoredSpan`, whose import takes seconds."""

    span: Span
    score: float


class Rules:
    """Finds addresses at *.org, capitalised words, and numbers; what masking needs of a
    `Recognizer`."""

    def __init__(self):
        self.types, self.threshold = list(RULES), 0.0
        self.asked = []

    def predict(self, texts):
        self.asked.append(len(texts))
        return [
            [
                Found(Span(*match.span(), match.lastgroup), score)
                for match in PATTERN.finditer(text)
                if (score := RULES[match.lastgroup][1]) >= self.threshold
            ]
            for text in texts
        ]


def main():
    """The command `wxb`, with these rules for every experiment."""
    from wxb.cli import app
    from wxb.project import trained

    trained.load = lambda experiment: Rules()
    app.main()
