from itertools import pairwise

import pytest

from wxb.tasks.classification.record.leakage import leakage_spans, without_leakage


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("WASHINGTON (Reuters) - The head said", "The head said"),
        ("WASHINGTON/MOSCOW (AP) — The head said", "The head said"),
        ("(Newswire) - The head said", "The head said"),
        ("SAN JUAN, Puerto Rico (Reuters) - It said", "It said"),
        ("He told Reuters on Monday", "He told on Monday"),
        ("It is so. Featured image via Getty Images", "It is so."),
        ("See pic.twitter.com/abc and https://x.org/a?b=1 now", "See and now"),
        ("as @someone said [VIDEO]", "as said"),
        ("Nothing (at all) tells who wrote this.", "Nothing (at all) tells who wrote this."),
        ("Terrible acting (Nicolas Cage) ruined it", "Terrible acting (Nicolas Cage) ruined it"),
        ("I want to read more about her.", "I want to read more about her."),
        ("So it went.\nRead more: Some Site", "So it went."),
        ("A dateline in the middle: PARIS - no.", "A dateline in the middle: PARIS - no."),
        ("", ""),
    ],
)
def test_leakage_is_removed(text, rest):
    assert " ".join(without_leakage(text).split()) == rest


def test_spans_are_sorted_and_disjoint():
    text = "BERLIN (Reuters) - a (Reuters) b @c Featured image via AP, @d https://e.org"
    spans = leakage_spans(text)
    assert spans == sorted(spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
