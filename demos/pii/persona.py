"""Fictional people, whose values fill the slots of a record."""

import random
import re

from demos.pii.pools import load_pools
from demos.pii.values import (
    ALPHABETS,
    BY_SEX,
    COMMON,
    COMPOSED,
    DATES,
    DAY_PARTS,
    DOMAIN_WORDS,
    DOUBLE_SHARE,
    JOINTS,
    MONTHS,
    PATTERNS,
    RESERVED_DOMAINS,
    TIMES,
    options,
)

# Half of all draws are from the first 2 ** -RARITY of a pool.
RARITY = 5


class Persona:
    """One fictional person; every slot keeps its value within a record."""

    def __init__(self, language: str, rng: random.Random) -> None:
        self._language = language
        self._pools = load_pools(language)
        self._rng = rng
        self._values: dict[tuple[str, str], str] = {}
        self._sexes: dict[str, int] = {}

    def value(self, kind: str, digit: str = "") -> str:
        """The value of a slot, by its kind (upper- or lower-case) and digit; drawn once."""
        key = (kind, digit)
        if key not in self._values:
            self._values[key] = self._draw(kind, digit)
        return self._values[key]

    def _draw(self, kind: str, digit: str) -> str:
        language, pools = self._language, self._pools
        match kind:
            case "AGE":
                return self._age()
            case "CITY":
                return self._draw_name(pools.city)
            case "DATE":
                return self._date()
            case "EMAIL":
                return self._email(digit)
            case "GIVENNAME":
                return self._draw_names(pools.given[self._sex(digit)], JOINTS[language][1])
            case "STREET":
                return self._draw_name(pools.street)
            case "SURNAME":
                return self._draw_names(pools.surname, JOINTS[language][0])
            case "TIME":
                return self._time()
            case "website":
                return self._website()
        if kind in BY_SEX[language]:
            return self._pick(BY_SEX[language][kind][self._sex(digit)])
        if kind in COMPOSED[language]:
            return self._fill_composed(self._pick(COMPOSED[language][kind]))
        return _fill(self._pick(COMMON.get(kind) or PATTERNS[language][kind]), self._rng)

    def _pick(self, alternatives: str) -> str:
        return self._rng.choice(options(alternatives))

    def _sex(self, digit: str) -> int:
        if digit not in self._sexes:
            self._sexes[digit] = self._rng.randrange(2)
        return self._sexes[digit]

    def _draw_name(self, pool: tuple[str, ...]) -> str:
        """A random name of a pool; a few names are common and most are rare."""
        return pool[int(len(pool) * self._rng.random() ** RARITY)]

    def _fill_composed(self, pattern: str) -> str:
        pools, rng = self._pools, self._rng
        text = _fill(pattern, rng)
        if "{" not in text:
            return text
        return text.format(
            surname=self._draw_name(pools.surname),
            surname2=self._draw_name(pools.surname),
            given=self._draw_name(pools.given[rng.randrange(2)]),
            city=self._draw_name(pools.city),
        )

    def _draw_names(self, pool: tuple[str, ...], joint: str) -> str:
        """A random name of a pool, or sometimes two with a joint between them."""
        name = self._draw_name(pool)
        is_double = self._rng.random() < DOUBLE_SHARE[self._language]
        return name + joint + self._draw_name(pool) if is_double else name

    def _domain(self) -> str:
        name = _fold(self._draw_name(self._pools.surname)) or self._pick(DOMAIN_WORDS)
        return name + self._rng.choice(["", "-"]) + self._pick(DOMAIN_WORDS)

    def _email(self, digit: str) -> str:
        rng = self._rng
        given = _fold(self.value("GIVENNAME", digit))
        surname = _fold(self.value("SURNAME", digit))
        handle = rng.choice(self._pools.handle)
        names = (f"{given}.{surname}", f"{given[:1]}{surname}", f"{surname}_{given}", handle)
        local = rng.choice(names) if given and surname else _fold(handle)
        if rng.random() < 0.3:
            local += str(rng.randrange(1, 2000))
        host = self._pick(DOMAIN_WORDS) if rng.random() < 0.5 else self._domain()
        return f"{local}@{host}.{self._pick(RESERVED_DOMAINS)}"

    def _website(self) -> str:
        start = self._rng.choice(["www.", "", "https://"])
        return f"{start}{self._domain()}.{self._pick(RESERVED_DOMAINS)}"

    def _age(self) -> str:
        ages = (18, 80) if self._rng.random() < 0.8 else (1, 99)
        return str(self._rng.randrange(*ages))

    def _date(self) -> str:
        rng = self._rng
        day, month = rng.randrange(1, 29), rng.randrange(1, 13)
        year = rng.randrange(2016, 2029) if rng.random() < 0.6 else rng.randrange(1940, 2016)
        name = options(MONTHS[self._language])[month - 1]
        return self._pick(DATES[self._language]).format(
            y=year,
            yy=f"{year % 100:02}",
            m=month,
            mm=f"{month:02}",
            month=name,
            mon=name[:3],
            d=day,
            dd=f"{day:02}",
        )

    def _time(self) -> str:
        rng = self._rng
        hour = rng.randrange(6, 23)
        return self._pick(TIMES[self._language]).format(
            h=hour,
            hh=f"{hour:02}",
            h12=(hour - 1) % 12 + 1,
            mi=f"{rng.randrange(0, 60, 5):02}",
            part=options(DAY_PARTS[self._language])[(hour >= 12) + (hour >= 18)],
        )


def _fill(pattern: str, rng: random.Random) -> str:
    """Fill a pattern of values.py with random digits and letters."""
    text = ""
    for char in pattern:
        alphabet = ALPHABETS.get(char)
        text += alphabet[int(rng.random() * len(alphabet))] if alphabet else char
    return text


def _fold(text: str) -> str:
    """The lower-case ASCII letters of a text, for an e-mail address."""
    return re.sub("[^a-z]", "", text.lower())
