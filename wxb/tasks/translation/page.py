"""Sections of translation pages: kinds of sentences, translations side by side and attention."""

from collections.abc import Mapping, Sequence

import numpy as np

from wxb.reporting import figures, parts
from wxb.reporting.parts import Charts, Example, Fold, Section, Study, by_category
from wxb.tasks.translation.metrics import PredictionRow, Scorer

EXAMPLES = 4  # sentences of each kind


class Page(parts.Page):
    """Kinds of sentences, translations side by side and attention."""

    RULE = (
        "BLEU counts the n-grams of up to four words that a translation shares with its references."
        " Case matters."
    )
    VALIDATION_NOTE = (
        "The curves show BLEU of greedy translations of validation sentences, with one reference at"
        " a time. The test uses the beam and all references of a sentence."
    )

    def sections(self, study: Study) -> list[Section]:
        """BLEU by kind of sentence, then translations and attention maps."""
        kinds = by_category(
            "BLEU by kind of sentence",
            study.systems,
            "by_kind",
            "bleu",
            count="sentences",
            metric=Scorer.METRICS[0],
        )
        note = (
            "By the number of words of the source (a Chinese character is a word), and by whether"
            " training has all words of the source and of a reference."
        )
        examples = [Fold(kind, e) for kind, e in select_examples(study.predictions).items()]
        charts = {name: attention_maps(rows) for name, rows in study.predictions.items()}
        maps = [Fold(f"Attention of {n}", [Charts(own)]) for n, own in charts.items() if own]
        chrf_note = "The chrF of each translation follows it."
        return [
            Section("kinds", "Kinds of sentences", [note, *kinds]),
            Section("translations", "Translations", [chrf_note, *examples, *maps]),
        ]


def select_examples(predictions: Mapping[str, Sequence[PredictionRow]]) -> dict[str, list[Example]]:
    """Sentences with the best and worst translations by mean chrF, and the most different ones.

    At most EXAMPLES of each kind, no source in two; of equal ones, longer sources come first.
    """
    scorer = Scorer()
    statistics = {name: scorer.statistics(rows) for name, rows in predictions.items()}
    chrf = {name: scorer.scores(sums)["chrf"] for name, sums in statistics.items()}
    scores = np.stack([*chrf.values()])  # (systems, sentences)
    first = next(iter(predictions.values()))
    lengths = np.array([len(row.input) for row in first])
    kinds = {
        "best translations": -scores.mean(axis=0),
        "worst translations": scores.mean(axis=0),
        "most different translations": scores.min(axis=0) - scores.max(axis=0),
    }
    used: set[str] = set()
    by_kind: dict[str, list[Example]] = {}
    for kind, order in kinds.items():
        indices = [int(index) for index in np.lexsort((-lengths, order.round(6)))]
        unused = [index for index in indices if first[index].input not in used][:EXAMPLES]
        used |= {first[index].input for index in unused}
        by_kind[kind] = []
        for index in unused:
            lines = [("reference", reference) for reference in first[index].gold]
            for name, rows in predictions.items():
                lines.append((name, f"{rows[index].predicted} ({chrf[name][index]:.0f})"))
            by_kind[kind].append(Example(first[index].input, lines))
    return by_kind


def attention_maps(rows: Sequence[PredictionRow]) -> dict[str, figures.go.Figure]:
    """Heatmaps of target by source tokens, by `input → prediction`, for rows with attention."""
    return {
        f"{row.input} → {row.predicted}": figures.matrix(
            np.array(row.attention["weights"]),
            row.attention["target"],
            row.attention["source"],
            names=("translation", "source"),
        )
        for row in rows
        if row.attention is not None
    }
