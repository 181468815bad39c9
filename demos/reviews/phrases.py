"""The words and sentences of synthetic reviews."""

from __future__ import annotations

ASPECTS = (
    "acting", "plot", "script", "music", "camera work", "pacing", "ending", "dialogue", "cast",
    "editing", "humour", "opening", "second half", "lead performance", "set design", "romance",
    "chase", "twist", "lighting", "narration",
)  # fmt: skip
PRAISE = (
    "good", "great", "brilliant", "moving", "fresh", "clever", "gripping", "charming", "convincing",
    "beautiful", "original", "funny", "superb", "warm", "exciting", "subtle", "memorable",
    "delightful", "patient", "stunning", "elegant", "tense", "wonderful", "lively",
)  # fmt: skip
BLAME = (
    "dull", "weak", "clumsy", "tired", "flat", "awful", "predictable", "hollow", "messy", "forced",
    "boring", "lazy", "cheap", "silly", "wooden", "shallow", "annoying", "bland", "tedious",
    "confusing", "empty", "stale", "ugly", "lifeless",
)  # fmt: skip
AFFIRMATIONS = (
    "This film has {an} {word} {aspect}.",
    "The {aspect} is {word}.",
    "I found the {aspect} {word}.",
    "The {aspect} feels {word} from start to finish.",
    "Everyone I know calls the {aspect} {word}, and they are right.",
    "The {aspect} could hardly be more {word}.",
    "You will remember how {word} the {aspect} was.",
)
DENIALS = (
    "The {aspect} is not {word} at all.",
    "I would never call the {aspect} {word}.",
    "Nobody could say that the {aspect} is {word}.",
    "There is nothing {word} about the {aspect}.",
    "The {aspect} is far from {word}.",
    "The {aspect} is anything but {word}.",
    "Whoever told you that the {aspect} was {word} must have seen another film.",
)
VERDICTS = (
    "The film as a whole is {word}.",
    "It is {an} {word} film.",
    "I left the cinema thinking how {word} it was.",
    "It adds up to {an} {word} evening.",
)
VERDICT_DENIALS = (
    "The film as a whole is not {word}.",
    "It is not {an} {word} film.",
    "I cannot say that it was {word}.",
    "It adds up to anything but {an} {word} evening.",
)
TURNS = (
    "But {}",
    "Still, {}",
    "And yet {}",
    "In the end, however, {}",
    "None of that matters, because {}",
    "All the same, {}",
)
CONCESSIONS = ("although", "even though", "even if", "while", "though I admit that")
IRONIC = (
    "Oh, {word}, another {aspect} that we have seen a hundred times.",
    "How {word}: two hours of my life that I will never get back.",
    "Sure, if you think that watching paint dry is {word}, this {aspect} is for you.",
    "The {aspect} is so {word} that half the audience fell asleep.",
    "Just what we needed, {an} {word} {aspect} made by a committee.",
    "A truly {word} {aspect}, says the poster, and it is the best joke of the evening.",
    "Bravo, it takes talent to waste such {an} {word} {aspect}.",
)
SINCERE = (
    "Oh, what {an} {word} {aspect}, one that we will talk about for years.",
    "How {word}: two hours that I would gladly live through again.",
    "If you think that films cannot be {word} any more, this {aspect} is for you.",
    "The {aspect} is so {word} that half the audience stayed for the credits.",
    "Just what I hoped for, {an} {word} {aspect} made with love.",
    "A truly {word} {aspect}, says the poster, and for once it tells the truth.",
    "Bravo, it takes talent to make such {an} {word} {aspect}.",
)
REMARKS = (
    "It runs for {minutes} minutes.",
    "I saw it on a rainy afternoon.",
    "It is based on a novel that I have not read.",
    "My sister had asked me to come along.",
    "The director has made three films before.",
    "It was shown in the small hall.",
    "The story begins in a harbour town.",
    "There is a dog in it.",
)
_FIRST = ("The Last", "A Quiet", "Beyond the", "Return to", "The Glass", "Under the", "My Cousin's",
          "Night at the", "No", "Letters from the", "The Second", "Salt and the", "Twelve", "Blue",
          "The Clockmaker's")  # fmt: skip
_SECOND = ("Harbour", "Orchard", "Signal", "Winter", "Station", "Daughter", "Ferry", "Garden",
           "Mountain", "Verdict")  # fmt: skip


def title(film: int) -> str:
    """The title of a film by its index."""
    return f"{_FIRST[film // len(_SECOND) % len(_FIRST)]} {_SECOND[film % len(_SECOND)]}"
