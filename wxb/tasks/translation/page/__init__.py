"""The parts of a translation page: kinds of sentences, examples, attention, published scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.formatting import listed, origin, rounded
from wxb.reporting.charts.parts import Part, Study
from wxb.tasks.translation.metrics import UNSEEN, PredictionRow, Scorer
from wxb.tasks.translation.page import published
from wxb.tasks.translation.page.examples import examples

MIN_SENTENCES = 30  # of a kind, for its BLEU to be named


class Page(parts.Page):
    """The page of a translation study."""

    RULE = (
        "BLEU counts the n-grams of up to four words that a translation shares with its references."
        " Case matters."
    )
    VALIDATION_NOTE = (
        "The curves show BLEU of greedy translations of validation sentences, with one reference at"
        " a time. The test uses the beam and all references of a sentence."
    )
    PUBLISHED_SCORES: ClassVar = {system.name: system.bleu for system in published.SYSTEMS}

    def failures(self, system: Mapping[str, Any]) -> str:
        """The kinds of sentences that a system translates worst."""
        kinds = system["by_kind"]
        total = sum(kinds[kind]["sentences"] for kind in UNSEEN) if kinds else 0
        rows = {
            kind: row for kind, row in kinds.items() if MIN_SENTENCES <= row["sentences"] < total
        }
        worst = sorted(rows.items(), key=lambda item: (item[1]["bleu"], item[0]))[:2]
        formatted = [
            f"{kind} (BLEU {rounded(row['bleu'], Scorer.METRICS[0])} on {row['sentences']:,})"
            for kind, row in worst
        ]
        if not formatted:
            return ""
        return (
            f"BLEU is lowest for {listed(formatted)}, among kinds of at least {MIN_SENTENCES}"
            " sentences."
        )

    def parts(self, study: Study) -> list[Part]:
        """The parts: kinds of sentences, translations, attention if any, published scores."""
        systems = study.comparison["systems"]
        shared = {"systems": systems, "chips": study.chips}
        part: Callable[..., Part] = partial(Part.from_template, __package__, **shared)
        kinds = next(iter(systems.values()))["by_kind"]
        rows = {name: study.predictions[name] for name in systems}
        maps = _attention_maps(rows)
        charts = {id_: _chart(row) for by_id in maps.values() for id_, row in by_id.items()}
        corpus = study.params.experiments[next(iter(systems))].corpus
        return [
            part("kinds", "Kinds of sentences", "noise", kinds=kinds, metric=Scorer.METRICS[0]),
            part("translations", "Translations", "noise", examples=examples(rows)),
            *([part("attention", "Attention", "noise", charts, maps=maps)] if maps else []),
            part(
                "published",
                "Published scores",
                "training",
                published=published,
                comparison=study.comparison,
                origin=origin(study.params.corpora[corpus]),
            ),
        ]


def _attention_maps(
    rows: Mapping[str, Sequence[PredictionRow]],
) -> dict[str, dict[str, PredictionRow]]:
    """The rows with attention by system and by the id of their chart."""
    maps = {
        name: {
            f"attention-{index}-{number}": row
            for number, row in enumerate(row for row in system_rows if row.attention)
        }
        for index, (name, system_rows) in enumerate(rows.items())
    }
    return {name: by_id for name, by_id in maps.items() if by_id}


def _chart(row: PredictionRow) -> figures.go.Figure:
    """The attention of a row as a heatmap."""
    assert row.attention is not None
    return figures.matrix(
        np.array(row.attention["weights"]),
        row.attention["target"],
        row.attention["source"],
        names=("translation", "source"),
        every=True,
    )
