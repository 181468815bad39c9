"""The report page of chat: kinds of question, replies, published choices and speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from wxb.reporting.charts import parts
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.scores import headline
from wxb.tasks.chat.metrics import PredictionRow
from wxb.tasks.chat.page import published
from wxb.tasks.chat.record import checking
from wxb.tasks.chat.record.conversation import Message, from_text

SPEED = (
    "Generated tokens per second, over all test sets. Reading the questions counts,"
    " loading the model does not."
)
MAX_CHARACTERS = 400  # of a question or reply
MAX_EXAMPLES = 20


class Example(NamedTuple):
    """A question of a kind with its answer, and the reply of each system."""

    kind: str
    history: list[Message]  # before the question
    question: str
    answer: str
    replies: Mapping[str, PredictionRow]
    is_correct: Mapping[str, bool]  # of replies that can be checked


class Page(parts.Page):
    """Kinds of question, replies, published choices and speed."""

    RULE = (
        "A reply is correct if it equals the answer, ignoring case, full or half width and a final"
        " full stop; JSON is compared by value."
    )
    VALIDATION_NOTE = (
        "The curves show token accuracy on validation answers, each token predicted from the"
        " correct ones before it. Test exact match differs: there, a model continues its own"
        " output."
    )

    def failures(self, system: Mapping[str, Any]) -> str:
        """The two kinds of question with the worst exact match, or that no reply was checked."""
        if not system["support"]:
            return "No answer can be checked, so exact match is 0: compare chrF."
        worst = sorted(system["by_kind"].items(), key=lambda kind: (kind[1]["exact"], kind[0]))[:2]
        kinds = " and ".join(
            f"{kind} ({row['exact']:.2f} of {row['support']:,})" for kind, row in worst
        )
        return f"It answers questions of kind {kinds} worst." if kinds else ""

    def parts(self, study: Study) -> list[Part]:
        """The parts: kinds if there are any, replies, published choices, speed."""
        systems = study.comparison["systems"]
        shared = {"systems": systems, "chips": study.chips}
        part: Callable[..., Part] = partial(Part.from_template, __package__, **shared)
        kinds = list(next(iter(systems.values()))["by_kind"])
        sections = [part("kinds", "Kinds of question", "noise", kinds=kinds)] if kinds else []
        rates = {name: f"{rate:,.0f}" for name, rate in study.rates("tokens").items()}
        title = "Tokens per second"
        return [
            *sections,
            part(
                "replies",
                "Replies",
                "noise",
                examples=examples(study.predictions),
                max_characters=MAX_CHARACTERS,
            ),
            part(
                "published",
                "Published",
                "training",
                published_loss=published.LOSS,
                effects=published.effects(study.params, study.comparison),
                headline=headline(study.comparison),
            ),
            part("speed", title, "cost", heading=title, note=SPEED, rates=rates),
        ]


def examples(predictions: Mapping[str, Sequence[PredictionRow]]) -> list[Example]:
    """The first question of each kind with the replies of all systems, at most MAX_EXAMPLES.

    Every question without a kind counts as a kind of its own.
    """
    first = next(iter(predictions.values()))
    indices: dict[str, int] = {}
    for index, row in enumerate(first):
        indices.setdefault(row.kind or f"question {index + 1}", index)
    shown = []
    for kind, index in [*indices.items()][:MAX_EXAMPLES]:
        *history, question = from_text(first[index].input)
        replies = {name: rows[index] for name, rows in predictions.items()}
        is_correct = {
            name: checking.is_correct(row.format, row.gold, row.predicted)
            for name, row in replies.items()
            if row.format is not None
        }
        answer = first[index].gold
        shown.append(Example(kind, history, question["content"], answer, replies, is_correct))
    return shown
