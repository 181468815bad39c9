"""Short Mandarin sentences from a small grammar: dates, prices, requests, digits and others.

Words of two characters differ in both from others of their list. Sentences can thus differ by one
word and still by more than one character.
"""

import hashlib
import random
import re
from collections.abc import Iterator
from itertools import islice

DIGITS = [*"零一二三四五六七八九"]
NUMBERS = [f"{tens}{ones}" for tens in ("", "十", "二十", "三十") for ones in ["", *DIGITS[1:]]]
WORDS = {
    "action": ["打开", "关上"],
    "city": ["北京", "上海", "广州", "成都"],
    "day": ["今天", "明早", "周末"],
    "digit": DIGITS,
    "event": ["开会", "吃饭", "上课", "睡觉", "看书"],
    "food": ["苹果", "牛奶", "面包", "鸡蛋"],
    "hour": ["一", "两", *NUMBERS[3:13]],
    "minutes": ["", "半", "十分", "一刻"],
    "month": NUMBERS[1:13],
    "number": NUMBERS[1:32],
    "part": ["早上", "中午", "傍晚", "夜里"],
    "person": ["爸爸", "妈妈", "老师", "朋友", "姐姐"],
    "place": ["学校", "公园", "车站", "医院", "银行"],
    "road": ["中山路", "人民路", "和平路", "长江街"],
    "room": ["客厅", "卧室", "厨房", "阳台"],
    "thing": ["空调", "电灯", "风扇", "窗帘", "音乐"],
    "weather": ["下雨", "有雪", "很热", "刮风"],
    "weekday": [*"一二三四五六日"],
}
PATTERNS = {
    "address": [
        "{road}{number}号{digit}楼",
        "{person}住{road}{number}号",
        "{place}在{road}{number}号",
    ],
    "command": [
        "{action}{room}{thing}",
        "{day}{action}{room}{thing}",
        "{part}{action}{room}{thing}",
        "叫{person}{action}{room}{thing}",
        "{day}{hour}点{action}{thing}",
    ],
    "date": ["{month}月{number}号星期{weekday}", "{person}{month}月{number}号生日"],
    "digits": ["{digit}{digit}{digit}{digit}"],
    "message": [
        "告诉{person}{day}{event}",
        "告诉{person}去{place}{event}",
        "{day}叫{person}{event}",
        "{part}叫{person}{event}",
    ],
    "plan": [
        "{person}{day}{part}{event}",
        "{person}{day}{part}去{place}",
        "{person}{part}去{place}{event}",
    ],
    "price": ["{number}斤{food}{number}块", "{food}{number}块{digit}一斤"],
    "setting": [
        "{room}{thing}调到{number}度",
        "{day}{thing}调到{number}度",
        "{part}{thing}调到{number}度",
    ],
    "time": [
        "{day}{hour}点{minutes}{event}",
        "{person}{hour}点{minutes}{event}",
        "{day}{part}{hour}点{event}",
    ],
    "trip": [
        "{person}坐{number}路车去{place}",
        "{person}从{place}去{city}",
        "{part}从{place}去{city}",
        "去{place}要{number}分钟",
    ],
    "weather": ["{city}{day}{part}{weather}", "{day}{city}{weather}"],
}
LONGEST = 9  # characters
ATTEMPTS = 1000  # random sentences without a new one, after which there are no more


def sentences(share: tuple[float, float]) -> Iterator[tuple[str, str]]:
    """Sentences and their kinds, without end; always the same ones in the same order.

    `share` is a range from 0 to 1 within all sentences: disjoint ranges have none in common. No two
    sentences of any ranges are within one character (inserted, deleted or replaced). Raises
    ValueError if there are no more sentences.
    """
    rng, seen, count = random.Random(0), set[str](), 0
    while True:
        candidates = islice(_random_sentences(rng), ATTEMPTS)
        new = (
            (text, kind)
            for text, kind in candidates
            if len(text) <= LONGEST and not near_keys(text) & seen
        )
        if (sentence := next(new, None)) is None:
            raise ValueError(f"there are no more than {count} sentences in {share}")
        seen |= near_keys(sentence[0])
        if share[0] <= _position(sentence[0]) < share[1]:
            count += 1
            yield sentence


def _random_sentences(rng: random.Random) -> Iterator[tuple[str, str]]:
    while True:
        kind = rng.choice([*PATTERNS])
        pattern = rng.choice(PATTERNS[kind])
        yield re.sub(r"\{(\w+)\}", lambda slot: rng.choice(WORDS[slot[1]]), pattern), kind


def near_keys(text: str) -> set[str]:
    """The text with a blank instead of, or before, each character, and after the last.

    Two texts have one of these in common exactly if they are within one character of each other.
    """
    return {
        f"{text[:index]} {text[index + width :]}"
        for index in range(len(text) + 1)
        for width in (0, 1)
    }


def _position(text: str) -> float:
    """A pseudorandom number from 0 to 1 that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
