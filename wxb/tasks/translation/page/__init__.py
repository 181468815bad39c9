"""What pages of studies tell of translations: kinds of sentences, examples, attention, others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.formatting import listed, origin, rounded
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.tasks.translation.metrics import UNSEEN, Judged, Scorer
from wxb.tasks.translation.page import published
from wxb.tasks.translation.page.examples import examples

ENOUGH = 30  # sentences, for the BLEU of one kind to be told


class Page(parts.Page):
    """Kinds of sentences, examples, attention, published BLEU."""

    RULE = (
        "BLEU counts the n-grams of up to four words that a translation shares with its references,"
        " in upper and lower case as they are."
    )
    WATCHED = (
        "A model is watched by the BLEU of its greedy translations of validation sentences, each"
        " reference by itself; the test is of the beam, and of all references of a sentence at"
        " once."
    )
    PUBLISHED: ClassVar = {system.name: system.bleu for system in published.SYSTEMS}

    def failures(self, system: Mapping[str, Any]) -> str:
        """The kinds of sentences that a system translates worst."""
        kinds = system["by_kind"]
        total = sum(kinds[kind]["sentences"] for kind in UNSEEN) if kinds else 0
        rows = {kind: row for kind, row in kinds.items() if ENOUGH <= row["sentences"] < total}
        worst = sorted(rows, key=lambda kind: (rows[kind]["bleu"], kind))[:2]
        lowest = [
            f"{kind} (BLEU {rounded(row['bleu'], Scorer.METRICS[0])} on {row['sentences']:,})"
            for kind, row in ((kind, rows[kind]) for kind in worst)
        ]
        what = f"Of the kinds of sentences with {ENOUGH} or more"
        return f"{what}, it translates these worst: {listed(lowest)}." if lowest else ""

    def parts(self, study: Study) -> list[Part]:
        """Scores by kind of sentence, translations side by side, attention, published figures."""
        systems = study.comparison["systems"]
        shown = {"systems": systems, "chips": figures.chips(systems)}
        kinds = render(
            __package__,
            "kinds.html",
            **shown,
            kinds=next(iter(systems.values()))["by_kind"],
            metric=Scorer.METRICS[0],
        )
        rows = {name: study.judged[name] for name in systems}
        side_by_side = render(__package__, "examples.html", **shown, examples=examples(rows))
        maps = dict(_maps(rows))
        looked = render(
            __package__,
            "attention.html",
            {key: figure for found in maps.values() for key, (figure, _) in found.items()},
            **shown,
            maps={
                name: {key: sentence for key, (_, sentence) in found.items()}
                for name, found in maps.items()
            },
        )
        charts = {key: figure for found in maps.values() for key, (figure, _) in found.items()}
        members = [study.params.experiments[name] for name in systems]
        others = render(
            __package__,
            "published.html",
            published=published,
            comparison=study.comparison,
            origin=origin(study.params.corpora[members[0].corpus]),
        )
        return [
            Part("kinds", "Kinds of sentences", "noise", kinds, {}),
            Part("translations", "Translations", "noise", side_by_side, {}),
            *([Part("attention", "Attention", "noise", looked, charts)] if maps else []),
            Part("published", "Published figures", "training", others, {}),
        ]


def _maps(
    rows: Mapping[str, Sequence[Judged]],
) -> Iterator[tuple[str, dict[str, tuple[Any, Judged]]]]:
    """Of each system that has attention: maps by the id of their place, and their sentences."""
    for number, (name, judged) in enumerate(rows.items()):
        shown = [row for row in judged if row.attention]
        if shown:
            yield name, {f"attention-{number}-{at}": (_map(r), r) for at, r in enumerate(shown)}


def _map(row: Judged) -> Any:
    assert row.attention is not None
    target = row.attention["target"]
    return figures.matrix(
        np.array(row.attention["weights"]),
        target,
        row.attention["source"],
        names=("translation", "source"),
        every=True,
    )
