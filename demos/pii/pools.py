"""Names of people and places to choose from, drawn once from Faker."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from faker import Faker

from demos.pii.values import options

_DRAWS = 150  # values asked of Faker for each pool and locale
_BROKEN_NAME = re.compile("--|[-'] ")  # by Faker: "L' Morin", "Sainte--Saint--Marchand"

_LOCALES = {
    "en": "en_US|en_GB|en_IN",
    "de": "de_DE|de_AT|de_CH",
    "fr": "fr_FR|fr_CA|fr_BE",
    "es": "es_ES|es_MX|es_CO",
    "zh": "zh_CN",
}

# Street shapes that Faker seldom has: stem + ending.
_STREET_STEMS = {
    "de": (
        "Linden|Bahnhof|Garten|Haupt|Berg|Schul|Kirch|Birken|Wald|Mühlen|Rosen|Eichen|Markt|Burg|"
        "Schiller|Goethe|Ring|Wiesen|Feld|Tannen|Ahorn|Buchen|Brunnen|Hafen|Sonnen|Park|See|Dorf|"
        "Kastanien|Ulmen|Erlen|Flieder|Amsel|Lerchen|Drossel|Finken|Falken|Fuchs|Reh|Post"
    ),
    "zh": (
        "中山|人民|解放|建设|和平|文化|长江|黄河|新华|胜利|南京|北京|上海|天山|泰山|昆仑|青年|"
        "学府|科技|滨江|环城|迎宾|朝阳|光明|幸福|友谊|金沙|锦绣|花园|翠竹|梧桐|桃园|云海|龙泉|"
        "凤凰|白云|东风|红旗|振兴|延安|淮海|湖滨|玉泉|石门|松江|芙蓉|海棠|银杏|望江|观山"
    ),
}
_STREET_ENDINGS = {
    "de": "straße|weg|gasse|allee|platz|ring|ufer|steig|damm|stieg",
    "zh": "路|街|大道|巷|东路|西路|南路|北路|中路|大街|南街|北街|支路",
}
# Faker makes up most Chinese cities.
_CITIES_ZH = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|无锡|宁波|温州|嘉兴|绍兴|金华|台州|合肥|芜湖|"
    "福州|厦门|泉州|漳州|南昌|九江|赣州|济南|青岛|烟台|潍坊|临沂|郑州|洛阳|开封|南阳|武汉|宜昌|"
    "襄阳|荆州|长沙|株洲|岳阳|衡阳|珠海|佛山|东莞|惠州|中山|汕头|南宁|桂林|柳州|北海|海口|三亚|"
    "成都|绵阳|乐山|宜宾|贵阳|遵义|昆明|大理|丽江|曲靖|西安|咸阳|宝鸡|延安|兰州|天水|西宁|银川|"
    "乌鲁木齐|喀什|拉萨|呼和浩特|包头|赤峰|太原|大同|临汾|石家庄|唐山|保定|邯郸|沈阳|大连|鞍山|"
    "锦州|长春|吉林|延吉|哈尔滨|大庆|齐齐哈尔|牡丹江|徐州|扬州|镇江|常州|南通|盐城|湖州|舟山"
)


@dataclass(frozen=True)
class Pools:
    """Distinct names of one language to choose from; given names are (male, female)."""

    given: tuple[tuple[str, ...], tuple[str, ...]]
    surname: tuple[str, ...]
    city: tuple[str, ...]
    street: tuple[str, ...]
    handle: tuple[str, ...]


@cache
def load_pools(language: str) -> Pools:
    """The names of `language`, the same in every process."""
    fakers = [Faker(locale) for locale in options(_LOCALES[language])]
    for faker in fakers:
        faker.seed_instance(language)

    def draw(method: str, fakers: Sequence[Faker] = fakers) -> tuple[str, ...]:
        values = (getattr(faker, method)() for faker in fakers for _ in range(_DRAWS))
        return _distinct(" ".join(v.split()) for v in values if not _BROKEN_NAME.search(v))

    male, female, handle = draw("first_name_male"), draw("first_name_female"), draw("user_name")
    # The third locale is there for its people: its places may be in another language.
    city, street = draw("city", fakers[:2]), draw("street_name", fakers[:2])
    if language == "zh":
        # Two characters make a given name, so a few dozen of them make thousands.
        male, female = (
            names + _distinct(a + b for a in names for b in names if len(a + b) == 2)
            for names in (male, female)
        )
        cities = options(_CITIES_ZH)
        city = _distinct(
            [*cities, *(name + "市" for name in cities), *(c for c in city if len(c) > 2)]
        )
        handle = draw("romanized_name")
    if language in _STREET_STEMS:
        stems, endings = options(_STREET_STEMS[language]), options(_STREET_ENDINGS[language])
        street += tuple(stem + ending for stem in stems for ending in endings)
    return Pools((male, female), draw("last_name"), city, street, handle)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
