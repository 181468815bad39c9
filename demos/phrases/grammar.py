"""A grammar of two languages at once: sentences about what people do with things."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

DIGITS = "零一二三四五六七八九"
VOWELS = tuple("aeiou")
WORDS: dict[str, list[Any]] = read_yaml(Path(__file__).with_name("words.yaml"))


class Sentence(NamedTuple):
    """A sentence in both languages, and its parts."""

    chinese: str
    english: str
    combination: str  # of verb and object
    construction: str  # statement, negation, or the question word
    template: str  # the Chinese sentence with a slot for each word that another could replace


class Phrase(NamedTuple):
    """A part of a sentence in both languages, and its slots in a template."""

    chinese: str
    english: str = ""
    template: str = ""


class Event(NamedTuple):
    """Who does what with what, when and where; an empty phrase is left out."""

    subject: Phrase
    third_person: bool  # singular
    verb: Sequence[Any]  # a row of words.yaml
    noun: Sequence[Any]
    objects: int | None  # their number; None for this or that one
    object: Phrase
    place: Phrase
    time: Phrase
    tense: str


def sentence(rng: random.Random) -> Sentence:
    """A random sentence; its `construction` is the name of the function that builds it."""
    event = _event(rng)
    build = rng.choice([_statement, _statement, _negation, _whether, _who, _what, _where, _when])
    if event.objects and event.objects > 1 and rng.random() < 0.15:
        build = _how_many
    chinese, english, _ = build(event)
    return Sentence(
        chinese,
        english[0].upper() + english[1:],
        f"{event.verb[1]} {'what' if build is _what else event.noun[2]}",
        build.__name__.strip("_").replace("_", " "),
        build(_slots(event)).chinese,
    )


def chinese_number(number: int) -> str:
    """A number from 1 to 99 in Chinese characters."""
    tens, units = divmod(number, 10)
    return (DIGITS[tens] if tens > 1 else "") + "十" * (tens > 0) + DIGITS[units] * (units > 0)


def english_number(number: int) -> str:
    """A number from 1 to 99 in English words."""
    small: list[str] = WORDS["numbers"]
    if number < len(small):
        return small[number]
    tens, units = divmod(number, 10)
    word = str(WORDS["tens"][tens - 2])
    return f"{word}-{small[units]}" if units else word


def _slots(event: Event) -> Event:
    """An event with slots instead of words."""
    return event._replace(
        subject=Phrase(event.subject.template),
        verb=["{verb}", *event.verb[1:]],
        noun=["{noun}", "{measure}", *event.noun[2:]],
        object=Phrase(event.object.template),
        place=Phrase(event.place.template),
        time=Phrase(event.time.template),
    )


def _event(rng: random.Random) -> Event:
    verb = rng.choice(WORDS["verbs"])
    noun = rng.choice([n for n in WORDS["nouns"] if {*n[4]} & {*verb[4]}])
    count = rng.choice([None, 1, 1, rng.randint(2, 10), rng.randint(11, 99)])
    subject, third_person = _subject(rng)
    time, tense = _time(rng)
    place = Phrase("")
    if rng.random() < 0.5:
        chinese, english = rng.choice(WORDS["places"])
        place = Phrase(chinese, english, "{place}")
    object_ = _object(noun, count, rng)
    return Event(subject, third_person, verb, noun, count, object_, place, time, tense)


def _subject(rng: random.Random) -> tuple[Phrase, bool]:
    """A subject, and whether it is in the third person singular."""
    if rng.random() < 0.5:
        chinese, english, third_person = rng.choice(WORDS["subjects"])
        return Phrase(chinese, english, "{name}"), third_person
    chinese, english = rng.choice(WORDS["people"])
    if rng.random() < 0.5:
        before, after = rng.choice(WORDS["clauses"])
        return Phrase(
            f"{before}的{chinese}", f"the {english} who {after}", "{clause}的{person}"
        ), True
    return Phrase(f"那个{chinese}", f"that {english}", "那个{person}"), True


def _object(noun: Sequence[Any], count: int | None, rng: random.Random) -> Phrase:
    chinese, measure, singular, plural, _ = noun
    before, adjective = rng.choice(WORDS["adjectives"]) if rng.random() < 0.4 else ("", "")
    if before:
        chinese = f"{before}{'的' * (len(before) > 1)}{chinese}"
        singular, plural = f"{adjective} {singular}", f"{adjective} {plural}"
    template = "{measure}{adjective}{noun}" if before else "{measure}{noun}"
    if count is None:
        is_near = rng.random() < 0.5
        return Phrase(
            f"{'这' if is_near else '那'}{measure}{chinese}",
            f"{'this' if is_near else 'that'} {singular}",
            f"{{this}}{template}",
        )
    if count == 1:
        article = "an" if singular.startswith(VOWELS) else "a"
        return Phrase(f"一{measure}{chinese}", f"{article} {singular}", f"一{template}")
    chinese_count = "两" if count == 2 else chinese_number(count)
    return Phrase(
        f"{chinese_count}{measure}{chinese}",
        f"{english_number(count)} {plural}",
        f"{{number}}{template}",
    )


def _time(rng: random.Random) -> tuple[Phrase, str]:
    """A time, and its tense."""
    chinese, english, tense, takes_hour = rng.choice(WORDS["times"])
    if takes_hour and rng.random() < 0.5:
        hour = _hour(rng)
        return Phrase(f"{chinese}{hour.chinese}", f"{hour.english} {english}", "{day}{hour}"), tense
    return Phrase(chinese, english, "{day}"), tense


def _hour(rng: random.Random) -> Phrase:
    hour = rng.randint(1, 12)
    chinese = ("两" if hour == 2 else chinese_number(hour)) + "点"
    english = english_number(hour)
    minutes = rng.choice([0, 15, 30, 10, 20, 25])
    match minutes:
        case 0:
            return Phrase(chinese, f"at {english} o'clock")
        case 15:
            return Phrase(f"{chinese}一刻", f"at a quarter past {english}")
        case 30:
            return Phrase(f"{chinese}半", f"at half past {english}")
    english_minutes = english_number(minutes)
    chinese_minutes = chinese_number(minutes)
    return Phrase(f"{chinese}{chinese_minutes}分", f"at {english_minutes} past {english}")


def _chinese_verb(event: Event, *, negated: bool = False) -> str:
    """The Chinese verb in its tense."""
    verb = event.verb[0]
    match event.tense:
        case "past":
            return f"没有{verb}" if negated else f"{verb}了"
        case "future":
            return f"不会{verb}" if negated else f"会{verb}"
    return f"不{verb}" if negated else str(verb)


def _auxiliary(event: Event) -> str:
    """The English auxiliary verb of questions and negations."""
    if event.tense == "present":
        return "does" if event.third_person else "do"
    return {"past": "did", "future": "will"}[event.tense]


def _english_verb(event: Event) -> str:
    """The English verb in its tense."""
    _, base, present, past, _ = event.verb
    match event.tense:
        case "past":
            return str(past)
        case "future":
            return f"will {base}"
    return str(present if event.third_person else base)


def _chinese(event: Event, *, negated: bool = False) -> str:
    """The Chinese clause of an event, without its final mark."""
    verb = _chinese_verb(event, negated=negated)
    before = f"{event.time.chinese}{event.subject.chinese}{event.place.chinese}"
    return f"{before}{verb}{event.object.chinese}"


def _english(event: Event, verb: str, *before: str) -> str:
    """The English clause of an event with a verb, after the words before it."""
    after = (event.object.english, event.place.english, event.time.english)
    return " ".join(filter(None, [*before, event.subject.english, verb, *after]))


def _statement(event: Event) -> Phrase:
    return Phrase(f"{_chinese(event)}。", f"{_english(event, _english_verb(event))}.")


def _negation(event: Event) -> Phrase:
    verb = f"{_auxiliary(event)} not {event.verb[1]}"
    return Phrase(f"{_chinese(event, negated=True)}。", f"{_english(event, verb)}.")


def _question(event: Event, *words: str) -> str:
    """An English question that begins with some words, then the auxiliary verb."""
    return f"{_english(event, event.verb[1], *words, _auxiliary(event))}?"


def _whether(event: Event) -> Phrase:
    return Phrase(f"{_chinese(event)}吗？", _question(event))


def _who(event: Event) -> Phrase:
    event = event._replace(subject=Phrase("谁", "who"), third_person=True)
    return Phrase(f"{_chinese(event)}？", f"{_english(event, _english_verb(event))}?")


def _what(event: Event) -> Phrase:
    event = event._replace(object=Phrase("什么"))
    return Phrase(f"{_chinese(event)}？", _question(event, "what"))


def _where(event: Event) -> Phrase:
    event = event._replace(place=Phrase("在哪里"))
    return Phrase(f"{_chinese(event)}？", _question(event, "where"))


def _when(event: Event) -> Phrase:
    subject = Phrase(f"{event.subject.chinese}什么时候", event.subject.english)
    event = event._replace(subject=subject, time=Phrase(""))
    return Phrase(f"{_chinese(event)}？", _question(event, "when"))


def _how_many(event: Event) -> Phrase:
    chinese, measure, _, plural, _ = event.noun
    event = event._replace(object=Phrase(f"几{measure}{chinese}"))
    return Phrase(f"{_chinese(event)}？", _question(event, "how many", plural))
