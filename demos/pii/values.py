"""The kinds of values and their patterns in each language.

Labelled kinds are in upper case. The tables have alternatives, separated by `|`.
"""

from functools import cache

LANGUAGES = ("en", "zh")

# The characters that a character of a pattern stands for.
ALPHABETS = {"#": "0123456789", "@": "123456789", "?": "ABCDEFGHJKLMNPRSTUVWXYZ"}

# Patterns of all languages, then of each language.
COMMON = {
    "CREDITCARDNUMBER": (
        "4### #### #### ####|5@## #### #### ####|4###-####-####-####|5###############|"
        "4###############|37## ###### #####|34#############|6011 #### #### ####"
    ),
    "order": (
        "######|########|##########|??-#####|A#######|?##-#####|#####-##|???####|R@##/##|20##-#####"
    ),
    "year": "197#|198#|199#|200#|201#|202#",
    "score": "@:#|@:@|@#:@#|@:0|@-#",
    "quantity": "@|@|1#|2#|@#",
    "room": "@##|@.##|?@##|?@|@#|?-@#",
    "version": "v@.#|@.#.#|v@.##.#|@#.#|20##.@",
}
PATTERNS = {
    "en": {
        "BUILDINGNUM": "@|@#|@#|@##|@###|@#A|@##B|@/@#",
        "DRIVERLICENSENUM": "?#######|?###-####-####|########|?????@#####??#??",
        "IDCARDNUM": "??######|??-####-###|#########|@##-###-###|??#######?",
        "PASSPORTNUM": "@########|?########|??#######|? ########",
        "SOCIALNUM": "@##-##-####|@##-##-####|@## ## ####|?? ## ## ## ?|??######?",
        "TAXNUM": "9##-7#-####|##-#######|@#########|##### #####|GB @## #### ##",
        "TELEPHONENUM": (
            "(@##) @##-####|@##-@##-####|@##.@##.####|+1 @## @## ####|+1-@##-@##-####|"
            "07### ######|+44 7### ######|020 #### ####|01### ######"
        ),
        "ZIPCODE": "#####|#####|#####-####|??# #??|??## #??|?# #??",
        "amount": "$@,###.##|£@#,###|$@##,###|USD @,###|@,### pounds",
        "flight": "BA@##|UA @###|DL@###|VS @#|EI###",
        "percent": "@%|@#%|@.#%|@#.#%|@# percent",
        "price": "$@#.##|$@##|$@,###.00|£@#.##|£@##|@## dollars",
    },
    "zh": {
        "BUILDINGNUM": "@号|@#号|@#号|@##号|@###号|@##弄@号|@#-@号",
        "DRIVERLICENSENUM": "@###########|@#####19##0@1#####|@#####19##1020####",
        "IDCARDNUM": "@#####19##0@1#####|@#####20##0@2#####|@#####19##111####X|?######(#)",
        "PASSPORTNUM": "E########|G########|E?#######|P?#######",
        "SOCIALNUM": "?########|#########|@#########|@#####19##0@0@####",
        "TAXNUM": "91######??######??|92######????####??|@##############|@#####L########",
        "TELEPHONENUM": (
            "1@#########|1@# #### ####|1@#-####-####|+86 1@# #### ####|0@#-########|"
            "0@##-#######|(0@#)########"
        ),
        "ZIPCODE": "@#####|0#####|######",
        "amount": "@,###.##元|@#,###元|@万元|¥@,###.##",
        "flight": "CA@###|MU@###|CZ@###|HU####",
        "percent": "@%|@#%|@.#%|百分之@#",
        "price": "@#元|@##元|¥@##.00|@.@元|人民币@###元",
    },
}

# Filled with other names than those of the person.
COMPOSED = {
    "en": {
        "brandname": (
            "Gala apples|Lincoln Park shuttle|Jack Daniel's|Darjeeling tea|Boston cream pie|"
            "Harley Davidson|{surname} Award|{surname} Street Food Festival|{city} Express|"
            "{city} cheddar|{given}'s Diner|Saint {given} Day"
        ),
        "company": (
            "{surname} & Sons|{surname} Ltd|{surname}, {surname2} and Partners|"
            "{surname} Logistics|{given}'s Bakery|{surname}-{surname2} Group|Bank of {city}"
        ),
        "product": (
            "Comfort Plus|Premium Saver|Aurora X@##|Model ?@|Basic @#|Ultra Fit @000|"
            "{surname} Classic|Pixelwave @#|Silver Line|Travel Card Flex"
        ),
    },
    "zh": {
        "brandname": (
            "北京烤鸭|老干妈|王老吉|西湖龙井|李宁|扬州炒饭|{surname}记凉茶|{city}马拉松|{city}快线|{surname}氏杯|{city}啤酒|"
            "老{surname}家牛肉面"
        ),
        "company": (
            "{surname}氏集团|{surname}记餐饮有限公司|{given}科技有限公司|{city}商业银行|{given}贸易公司|{city}物流公司|"
            "老{surname}修车行"
        ),
        "product": "舒适版|畅享套餐@#元档|极光X@##|?@型号|银卡套餐|家庭组合包|尊享版@0|青云@号",
    },
}

# Values for a man and for a woman; values for both are in both.
BY_SEX = {
    "en": {
        "TITLE": (
            "Mr|Mr.|Dr|Dr.|Prof.|Sir|Professor|Rev.",
            "Ms|Mrs|Ms.|Mrs.|Miss|Dr|Dr.|Prof.|Dame|Mx",
        ),
        "SEX": ("M|male|Male|m", "F|female|Female|f"),
        "GENDER": (
            "man|Man|trans man|non-binary|genderfluid|cisgender man|agender",
            "woman|Woman|trans woman|non-binary|genderqueer|cisgender woman",
        ),
    },
    "zh": {
        "TITLE": ("先生|教授|博士|医生|老师|经理|主任", "女士|小姐|教授|博士|医生|老师|经理|主任"),
        "SEX": ("男|男性|M|男", "女|女性|F|女"),
        "GENDER": (
            "男人|跨性别男性|非二元性别|顺性别男性|性别流动",
            "女人|跨性别女性|非二元性别|顺性别女性|无性别",
        ),
    },
}

MONTHS = {
    "en": "January|February|March|April|May|June|July|August|September|October|November|December",
    "zh": "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
}
DATES = {
    "en": (
        "{y}-{mm}-{dd}|{mm}/{dd}/{y}|{d}/{m}/{yy}|{dd}.{mm}.{y}|{d} {month} {y}|"
        "{month} {d}, {y}|{month} {d}|{d} {mon} {y}|{mon} {d}|{dd}-{mon}-{y}"
    ),
    "zh": (
        "{y}-{mm}-{dd}|{y}/{m}/{d}|{y}.{mm}.{dd}|{y}年{m}月{d}日|{y}年{mm}月{dd}日|{m}月{d}日|"
        "{month}{d}号"
    ),
}
TIMES = {
    "en": "{hh}:{mi}|{h12}:{mi} {part}|{h12}:{mi}{part}|{h12} {part}|{h12}{part}|{hh}.{mi}",
    "zh": "{hh}:{mi}|{part}{h12}点|{part}{h12}点{mi}分|{part}{h12}点半|{part}{h12}:{mi}",
}
# Morning, afternoon, evening.
DAY_PARTS = {"en": "am|pm|pm", "zh": "上午|下午|晚上"}

# Separators of double surnames and of double given names.
JOINTS = {"en": ("-", " "), "zh": ("", "")}
DOUBLE_SHARE = {"en": 0.06, "zh": 0.0}

DOMAIN_WORDS = "mail|post|web|inbox|letter|net|fast|blue|home|office|cloud|nova"
# Reserved by RFC 2606, so that no address or website is real.
RESERVED_DOMAINS = "example|example.com|example.org|example.net"


@cache
def options(text: str) -> tuple[str, ...]:
    """The alternatives of a table entry; cached."""
    return tuple(text.split("|"))
