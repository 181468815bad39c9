"""What pages of studies tell of chat: kinds of question, prompts, replies, published choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import headline
from wxb.tasks.chat.metrics import Judged
from wxb.tasks.chat.page import published
from wxb.tasks.chat.record import checking
from wxb.tasks.chat.record.conversation import Message, of_text

SPEED = (
    "Tokens of replies that are written in a second, in all ways of asking and of all test sets"
    " together: reading the questions counts, loading does not."
)
LONGEST = 400  # characters of a question or reply that are shown


class Example(NamedTuple):
    """A question of a kind with its answer, and what each system replies."""

    kind: str
    before: list[Message]  # turns that come before the question
    asked: str
    answer: str
    replies: Mapping[str, Judged]
    right: Mapping[str, bool]  # of those that can be checked


class Page(parts.Page):
    """Kinds of question, prompts, replies, published choices."""

    RULE = (
        "A reply counts when it is the answer, but for capitals, full and half width and a last"
        " full stop; in JSON the values count."
    )
    WATCHED = (
        "A model is watched by its accuracy on the tokens of validation answers, each after the"
        " right ones before it; that is not the exact match of the test, where it goes on from its"
        " own."
    )

    def failures(self, system: Mapping[str, Any]) -> str:
        """The kinds of question that a system answers worst, or that no answer can be checked."""
        if not system["support"]:
            return "No answer can be checked, so that nothing is right: compare chrF."
        worst = sorted(system["by_kind"].items(), key=lambda kind: (kind[1]["exact"], kind[0]))[:2]
        told = " and ".join(
            f"{kind} ({row['exact']:.2f} of {row['support']:,})" for kind, row in worst
        )
        return f"Of all kinds of question it answers {told} worst." if told else ""

    def parts(self, study: Study) -> list[Part]:
        """Scores by kind and by prompt, and replies."""
        systems = study.comparison["systems"]
        shown = {"systems": systems, "chips": figures.chips(systems)}
        kinds = list(next(iter(systems.values()))["by_kind"])
        prompts = {
            name: system["by_prompt"] for name, system in systems.items() if system["by_prompt"]
        }
        found = []
        if kinds:
            html = render(__package__, "kinds.html", **shown, kinds=kinds)
            found.append(Part("kinds", "Kinds of question", "noise", html, {}))
        if prompts:
            asked = [*dict.fromkeys(name for rows in prompts.values() for name in rows)]
            html = render(__package__, "prompts.html", **shown, prompts=prompts, asked=asked)
            found.append(Part("prompts", "Prompts", "noise", html, {}))
        html = render(
            __package__, "replies.html", **shown, examples=examples(study.judged), longest=LONGEST
        )
        found.append(Part("replies", "Replies", "noise", html, {}))
        html = render(
            __package__,
            "published.html",
            **shown,
            published=published,
            effects=published.effects(study.params, study.comparison),
            headline=headline(study.comparison),
        )
        found.append(Part("published", "Published", "training", html, {}))
        rates = {name: f"{rate:,.0f}" for name, rate in study.rates("tokens").items()}
        shown |= {"heading": "Tokens a second", "told": SPEED, "rates": rates}
        html = render(__package__, "speed.html", **shown)
        return [*found, Part("speed", "Tokens a second", "cost", html, {})]


def examples(judged: Mapping[str, Sequence[Judged]]) -> list[Example]:
    """The first question of each kind, or the first few where there are no kinds."""
    first = next(iter(judged.values()))
    places: dict[str, int] = {}
    for place, row in enumerate(first):
        places.setdefault(row.kind or f"question {place + 1}", place)
    found = []
    for kind, place in [*places.items()][:20]:
        *before, asked = of_text(first[place].input)
        replies = {name: rows[place] for name, rows in judged.items()}
        right = {
            name: checking.right(row.format, row.gold, row.predicted)
            for name, row in replies.items()
            if row.format is not None
        }
        answer = first[place].gold
        found.append(Example(kind, before, asked["content"], answer, replies, right))
    return found
