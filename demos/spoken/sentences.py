"""Short sentences for a smart home or telephone: numbers, commands and appointments."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

ROOMS = {
    "zh": ["客厅", "卧室", "厨房", "书房", "浴室", "阳台"],
    "en": ["living room", "bedroom", "kitchen", "study", "bathroom", "hall"],
}
THINGS = {
    "zh": ["灯", "窗帘", "空调", "电视", "音乐", "风扇"],
    "en": ["light", "curtain", "heating", "radio", "music", "fan"],
}
ACTIONS = {
    "zh": ["打开", "关上", "调高", "调低"],
    "en": ["turn on", "turn off", "turn up", "turn down"],
}
DAYS = {"zh": ["今天", "明天", "后天"], "en": ["today", "tomorrow", "on Sunday"]}
TIMES = {"zh": ["早上", "下午", "晚上"], "en": ["early", "after noon", "at night"]}
HALVES = {"zh": ["", "半"], "en": ["", " thirty"]}
DIGITS = {
    "zh": [*"零一二三四五六七八九"],
    "en": ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
}
TENS = {"zh": ["十", "二十", "三十"], "en": ["ten", "twenty", "thirty"]}


def _digits(language: str, rng: random.Random) -> str:
    digits = rng.choices(DIGITS[language], k=rng.randint(3, 5))
    return ("" if language == "zh" else " ").join(digits)


def _command(language: str, rng: random.Random) -> str:
    action, room, thing = _draw(language, rng, ACTIONS, ROOMS, THINGS)
    return f"{action}{room}{thing}" if language == "zh" else f"{action} the {room} {thing}"


def _setting(language: str, rng: random.Random) -> str:
    room, thing, tens, ones = _draw(language, rng, ROOMS, THINGS, TENS, DIGITS)
    if language == "zh":
        return f"{room}{thing}调到{tens}{ones.removeprefix('零')}"
    return f"set the {room} {thing} to {tens} {ones}"


def _appointment(language: str, rng: random.Random) -> str:
    day, time, half, hour = _draw(language, rng, DAYS, TIMES, HALVES, DIGITS)
    if language == "zh":
        return f"{day}{time}{hour}点{half}叫我"
    return f"wake me {day} {time} at {hour}{half}"


def _draw(language: str, rng: random.Random, *lists: dict[str, list[str]]) -> Iterator[str]:
    return (rng.choice(words[language]) for words in lists)


KINDS: dict[str, Callable[[str, random.Random], str]] = {
    "appointment": _appointment,
    "command": _command,
    "digits": _digits,
    "setting": _setting,
}
ATTEMPTS = 1000  # random sentences without a new one, after which there are no more


def sentences(
    languages: Sequence[str], share: tuple[float, float], rng: random.Random
) -> Iterator[tuple[str, str, str]]:
    """Random sentences without repetition, with language and kind; without end.

    `share` is a range from 0 to 1 within all sentences: disjoint ranges have none in common. Raises
    ValueError if there are no more sentences.
    """
    seen: set[str] = set()
    while True:
        candidates = islice(_random_sentences(languages, rng), ATTEMPTS)
        new = (s for s in candidates if s[0] not in seen and share[0] <= _position(s[0]) < share[1])
        if (sentence := next(new, None)) is None:
            raise ValueError(f"there are no more than {len(seen)} sentences in {share}")
        seen.add(sentence[0])
        yield sentence


def _random_sentences(
    languages: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str, str]]:
    while True:
        language, kind = rng.choice(languages), rng.choice([*KINDS])
        yield KINDS[kind](language, rng), language, kind


def _position(text: str) -> float:
    """A pseudorandom number from 0 to 1 that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
