from itertools import pairwise

import pytest

from wxb.tasks.classification.record.giveaways import giveaways


def left(text):
    parts, reached = [], 0
    for start, end in giveaways(text):
        parts.append(text[reached:start])
        reached = end
    return " ".join("".join([*parts, text[reached:]]).split())


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
def test_what_tells_the_publisher_is_found(text, rest):
    assert left(text) == rest


def test_stretches_are_sorted_and_disjoint():
    found = giveaways("BERLIN (Reuters) - a (Reuters) b @c Featured image via AP, @d https://e.org")
    assert found == sorted(found)
    assert all(left[1] <= right[0] for left, right in pairwise(found))
