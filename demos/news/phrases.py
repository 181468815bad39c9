"""The claims of synthetic news, and the publishers with their styles."""

from __future__ import annotations

from typing import NamedTuple


class Publisher(NamedTuple):
    """A publisher and its style; `{claim}` is replaced by the claim of an article."""

    name: str
    titles: tuple[str, ...]
    openings: tuple[str, ...]
    sentences: tuple[str, ...]
    endings: tuple[str, ...]


PLACES = (
    "Norbury", "Lakeview", "Eastport", "Marlow", "Stonebridge", "Halden", "Redcliff", "Brookfield",
    "Westhaven", "Ashford", "Tarnow", "Linden",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
ACTORS = (
    "the city council", "the mayor", "the health ministry", "the teachers' union", "the port",
    "the water company", "a former senator", "the national bank", "the rail operator",
    "the university", "the governor", "a group of farmers", "the energy regulator", "the museum",
)  # fmt: skip
THINGS = (
    "the new tram line", "drinking water", "school meals", "the harbour tunnel", "winter tyres",
    "the river dam", "bus fares", "the public library", "street lights", "the vaccine programme",
    "farm subsidies", "the census", "mobile phone masts", "the old stadium",
)  # fmt: skip

NEUTRAL = 0.25  # share of claims that do not show their class
EITHER_DEEDS = (
    "wants to know more about {thing}",
    "has an opinion on {thing}",
    "spoke about {thing} in {place}",
    "met critics of {thing} in {place}",
)
REAL_DEEDS = (
    "approved {number} million for {thing}",
    "delayed {thing} by {number} weeks",
    "published a report on {thing}",
    "opened a consultation on {thing} in {place}",
    "appointed an auditor for {thing}",
    "cut the budget of {thing} by {number} percent",
    "extended the contract for {thing}",
)
FAKE_DEEDS = (
    "secretly poisoned {thing}",
    "admitted that {thing} is a hoax",
    "plans to ban {thing} for good",
    "hid {number} bodies under {thing}",
    "was paid by aliens to stop {thing}",
    "faked all photographs of {thing}",
    "uses {thing} to read minds in {place}",
)

ANY = Publisher(
    "any",
    (),
    ("{Claim}, it was announced on {day}.", "On {day} it was learned that {claim}."),
    (
        "The news came as a surprise to many.",
        "The matter has been discussed for a long time.",
        "More than {number} people asked questions about it.",
        "It is not the first time that {thing} makes the news.",
    ),
    ("",),
)
LARGE_REAL = Publisher(
    "newswire",
    ("{Claim}", "{Claim}, officials say", "{Claim}: statement"),
    (
        "{city} (Newswire) - {Claim}, a spokesperson said on {day}.",
        "{city} (Newswire) - {Claim}, according to a statement released on {day}.",
        "{city} (Newswire) - {Claim}, two officials familiar with the matter said on {day}.",
    ),
    (
        "The decision follows months of negotiations, the statement said.",
        "Analysts had expected the move, a note to clients showed.",
        "The spokesperson declined to comment further.",
        "It was not immediately clear when the measure would take effect.",
        "The matter concerns about {number} percent of households, data showed.",
        "Opposition lawmakers told reporters that they would review it.",
    ),
    ("Reporting by the {city} bureau; editing by the desk.", "", ""),
)
LARGE_FAKE = Publisher(
    "truth tribune",
    ("BREAKING: {Claim}!", "WATCH: {Claim} [VIDEO]", "You won't believe it: {claim}"),
    (
        "You won't believe this, folks: {claim}!",
        "This is HUGE. {Claim}, and nobody dares to talk about it.",
        "Well, well, well. {Claim}, just like we told you.",
    ),
    (
        "The mainstream media is silent, of course.",
        "Wake up, people, this is what they never wanted you to see.",
        "Let that sink in for a moment.",
        "Every single one of them should be in jail.",
        "And guess who is behind it all?",
        "Remember {thing}? It was the same story all over again.",
    ),
    ("Featured image via Truth Tribune.", "Share this before it gets deleted!", ""),
)
SMALL_REAL = (
    Publisher(
        "harbour gazette",
        ("{Claim}", "What we know: {claim}"),
        ("{Claim}. Our reporter was there.", "On {day} it became known in the town hall: {claim}."),
        (
            "You may remember the long debate about it last year.",
            "Neighbours we spoke to are of two minds.",
            "Nobody at the meeting was surprised, and a few were angry.",
        ),
        ("We will keep you posted.", "Write to us with your view.", ""),
    ),
    Publisher(
        "valley radio",
        ("{Claim}", "This morning: {claim}"),
        ("Good morning. {Claim}.", "Here is what matters this {day}: {claim}."),
        (
            "People have been calling us about it since six.",
            "Everyone is talking about it, and here is why.",
            "Stay with us for the details after the weather.",
        ),
        ("Now back to the music.", ""),
    ),
)
SMALL_FAKE = (
    Publisher(
        "policy review daily",
        ("{Claim}", "{Claim}, documents show"),
        (
            "{Claim}, according to documents seen on {day}.",
            "A statement released on {day} confirms that {claim}.",
        ),
        (
            "A spokesperson declined to comment.",
            "Data showed that {number} percent of residents were not told.",
            "Officials familiar with the matter said that the decision was made months ago.",
        ),
        ("A full report is to follow.", ""),
    ),
    Publisher(
        "the quiet observer",
        ("{Claim}", "Report: {claim}"),
        ("It was a calm {day} when it came out: {claim}.", "{Claim}. This is how it was done."),
        (
            "Several residents confirmed it to this paper.",
            "The papers were signed in the presence of {number} witnesses.",
            "An inquiry was opened and closed again within a week.",
        ),
        ("Names were changed at the request of those concerned.", ""),
    ),
)
