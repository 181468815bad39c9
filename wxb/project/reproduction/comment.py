"""Comparisons as a Markdown comment for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wxb.project.reproduction.comparison import Comparison, Verdict
from wxb.project.reproduction.wording import (
    HERE,
    Summary,
    change_line,
    score_cells,
    summary,
    swap_sentence,
    verdict_line,
)
from wxb.reporting.charts.formatting import listed, words
from wxb.reporting.charts.pairs import BEYOND_NOISE
from wxb.reporting.tables import markdown_table

# Scores that a reviewer looks at; all others are inside their ranges or cannot be compared.
SHOWN = (Verdict.OUTSIDE, Verdict.DIFFERS, Verdict.NEW, Verdict.GONE)
UNCHANGED = (Summary.NOT_RUN, Summary.SAME, Summary.SCORES)


def comment(results: Sequence[Comparison], before: str, after: str) -> str:
    """Markdown with the verdicts, the scores outside their ranges, and the changed parameters."""
    changed = [result for result in results if summary(result) not in UNCHANGED]
    unchanged = [result.name for result in results if summary(result) in UNCHANGED]
    parts = [
        f"### Results of {'the working tree' if after == HERE else after} compared with {before}\n",
        "".join(f"- {verdict_line(result, before, after)}\n" for result in changed),
        _scores(changed, before, after),
        "".join(
            f"- {swap_sentence(swap, before, after)}\n"
            for result in changed
            for swap in result.swaps
            if BEYOND_NOISE in (swap.finding, swap.finding_now)
        ),
        *_params(changed),
        f"Unchanged: {listed(unchanged)}.\n" if unchanged else "",
    ]
    return "\n".join(filter(None, parts))


def _scores(results: Sequence[Comparison], before: str, after: str) -> str:
    """A table of the scores in SHOWN; a sentence if there are none."""
    rows = [
        [result.name, score.name, words(score.metric), *score_cells(score), score.verdict.value]
        for result in results
        for score in result.scores
        if score.verdict in SHOWN
    ]
    if not rows:
        return "No score changed beyond noise.\n"
    header = ["result", "score", "metric", f"{before} (range)", after, "verdict"]
    return f"Scores outside their range, new or gone:\n\n{markdown_table([header, *rows])}"


def _params(results: Sequence[Comparison]) -> Iterator[str]:
    """The parameters that differ, closed; nothing if there are none."""
    lines = list(dict.fromkeys(change_line(c) for result in results for c in result.params))
    if lines:
        yield f"<details><summary>Parameters that differ: {len(lines)}</summary>\n"
        yield "\n".join(["```text", *lines, "```\n", "</details>\n"])
