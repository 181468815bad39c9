"""Sections of chat pages: kinds of question, and replies."""

from collections.abc import Iterator, Mapping, Sequence

from wxb.reporting import parts
from wxb.reporting.formatting import Table, rounded
from wxb.reporting.parts import Fold, Section, Study, by_category
from wxb.tasks.chat.metrics import PredictionRow
from wxb.tasks.chat.record import checking
from wxb.tasks.chat.record.conversation import deserialize

MAX_CHARACTERS = 400  # of a question or reply
MAX_EXAMPLES = 20


class Page(parts.Page):
    """Kinds of question, and replies with their diversity."""

    RULE = (
        "A reply is correct if it equals the answer, ignoring case, full or half width and a final"
        " full stop; JSON is compared by value."
    )
    VALIDATION_NOTE = (
        "The curves show token accuracy on validation answers, each token predicted from the"
        " correct ones before it. Test exact match differs: there, a model continues its own"
        " output."
    )

    def sections(self, study: Study) -> list[Section]:
        """Exact match by kind of question, and replies side by side with their diversity."""
        kinds = by_category("Exact match by kind", study.systems, "by_kind", "exact")
        rows = [
            [name, *(rounded(system[key]) for key in ("distinct_1", "distinct_2"))]
            for name, system in study.systems.items()
        ]
        diversity = Table("Diversity of replies", ["experiment", "distinct-1", "distinct-2"], rows)
        note = (
            "Distinct-1 and distinct-2: different words and pairs of words of all replies, as a"
            " share. Replies: the first test question of each kind."
        )
        return [
            *([Section("kinds", "Kinds of question", kinds)] if kinds else []),
            Section("replies", "Replies", [note, diversity, *examples(study.predictions)]),
        ]


def examples(predictions: Mapping[str, Sequence[PredictionRow]]) -> Iterator[Fold]:
    """The first question of each kind with the replies of all systems, at most MAX_EXAMPLES.

    Every question without a kind counts as a kind of its own. Texts are cut at MAX_CHARACTERS.
    """
    first = next(iter(predictions.values()))
    indices: dict[str, int] = {}
    for index, row in enumerate(first):
        indices.setdefault(row.kind or f"question {index + 1}", index)
    for kind, index in [*indices.items()][:MAX_EXAMPLES]:
        *history, question = deserialize(first[index].input)
        rows = [["answer", "", first[index].gold[:MAX_CHARACTERS]]]
        for name, replies in predictions.items():
            rows.append([name, *_correct_and_text(replies[index])])
        turns = [f"{turn['role']}: {turn['content'][:MAX_CHARACTERS]}" for turn in history]
        table = Table(f"Replies to {kind}", ["experiment", "correct", "reply"], rows)
        yield Fold(f"{kind}: {question['content'][:MAX_CHARACTERS]}", [*turns, table])


def _correct_and_text(row: PredictionRow) -> tuple[str, str]:
    """Correctness ("yes", "no", "" if unchecked), and the text, with " …" if cut or not ended."""
    correct, text = "", row.predicted
    if row.format is not None:
        correct = "yes" if checking.equals_answer(row.format, row.gold, text) else "no"
    is_whole = row.ended and len(text) <= MAX_CHARACTERS
    return correct, f"{text[:MAX_CHARACTERS]}{'' if is_whole else ' …'}"
