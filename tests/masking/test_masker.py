"""Which spans are masked, and which values verification finds."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from unittest.mock import Mock

import pandas as pd
import pytest

from tests.masking.rules import Rules, mapping_of, unmasked
from wxb.core.errors import WxbError
from wxb.masking.files import Source, rewrite
from wxb.masking.masker import LeakCheck, Masker
from wxb.masking.placeholders import Placeholders
from wxb.tasks.ner.models.predictor import SpanFinder

TEXT = "Ann (44) and Ann, bob@x.org, Zoé 5"


def masked(*texts, operators="replace", **options):
    return Masker(Rules(), operators, **options).mask(texts)


def test_types_have_their_operator_or_the_default():
    operators = {"DEFAULT": {"operator": "number"}, "AGE": {"operator": "mask"}}
    operators["EMAIL"] = {"operator": "redact"}
    assert masked(TEXT, operators=operators) == ["<NAME_1> (**) and <NAME_1>, , <NAME_2> *"]


@pytest.mark.parametrize(
    ("text", "options", "left"),
    [
        ("bob@x.com", {}, ["e-mail address"]),  # this recognizer finds .org only
        ("a.bob@x.org", {}, []),
        ("a.bob@x.org", {"only": ["AGE"]}, ["e-mail address"]),
        ("bob@x.com", {"allow": ["bob@x.com"]}, []),
        ("bob@x.com", {"deny": ["/.*com/"]}, []),
        ("bob@x.com", {"deny": ["x.com"]}, []),
        ("to bob@x.org", {"operators": {"EMAIL": {"operator": "keep"}}}, ["e-mail address"]),
        ("4111 1111 1111 1111", {}, []),
        ("4111 1111 1111 1111", {"threshold": 0.6}, ["card number"]),
    ],
)
def test_verification_finds_values_that_are_not_masked_completely(text, options, left):
    masker = Masker(Rules(), **options)
    check = LeakCheck(masker)
    rewrite([Source(BytesIO(text.encode()), "it")], masker.edits, check=check.add)
    assert [line.split(": ")[1] for line in [*check.report()][1:]] == left


def test_words_of_masked_values_are_found_in_any_form():
    masker = Masker(Rules(), deny=["Zo\u00e9 M\u00fcller"])
    check = LeakCheck(masker)
    text = "Zo\u00e9 M\u00fcller\nM\u00dcLLER\nMU\u0308LLER\nM\u00fcl\u00adler\nm\u00fcller\n"
    rewrite([Source(BytesIO(text.encode()), "it")], masker.edits, check=check.add)
    assert [*check.report()][-1].endswith("line 2, 3, 4")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"deny": "name"}, TypeError),
        ({"only": "NAME"}, TypeError),
        ({"threshold": 90}, WxbError),
        ({"threshold": float("nan")}, WxbError),
        ({"deny": [""]}, WxbError),
    ],
)
def test_options_that_would_mask_less_are_refused(options, error):
    with pytest.raises(error):
        masked(TEXT, **options)


def test_a_list_of_values_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "list").write_bytes(b"\xef\xbb\xbfoak\n")
    assert masked("an oak", deny=[f"@{tmp_path}/list"]) == ["an <DENIED>"]


def test_a_part_of_a_value_is_masked_whole_and_a_span_ends_with_its_line():
    assert masked("a\u200b.bob@x.org") == ["<EMAIL>"]
    assert masked("Ann\n\t Bob ", deny=["/A[^x]*/"]) == ["<DENIED>\n\t <DENIED> "]
    mapping = mapping_of({"<NAME_1>": "Zoé Kim"})
    texts = ["Zoe\u0301 Ki\u00adm"]
    new = masked(*texts, operators="number", mapping=mapping)
    assert (new, unmasked(mapping, new)) == (["<NAME_2>"], texts)
    assert masked("a.bob@x.org", allow=["a.bob@x.org"]) == ["a.bob@x.org"]
    assert masked("Ann\n\nBob\r\n", deny=["/A[^x]*/"]) == ["<DENIED>\n\n<DENIED>\r\n"]
    mapping = mapping_of({"<CITY_1>": "rio  Bob"})
    new = masked("rio", "x rio Bob", "rio\nBob", operators="number", mapping=mapping)
    assert new == ["rio", "x <NAME_1>", "<NAME_2>\n<NAME_3>"]


@pytest.mark.parametrize("end", ["\n\n", "\r\n", " "])
def test_a_long_text_is_masked_as_its_lines_are(end):
    lines = [f"Ann{number} of Bob" + "-" * (number % 7) for number in range(2_000)]
    assert masked(end.join(lines)) == [end.join(masked(*lines))]


def test_denied_values_are_masked_as_whole_words_and_with_the_spans_that_they_overlap():
    assert masked("in Anna, of an oak", deny=["an", "oa"]) == ["in <NAME>, of <DENIED> oak"]
    assert masked("我叫王明abc", deny=["王明"]) == ["我叫<DENIED>abc"]
    assert masked("a Jose\u0301, José", deny=["José"], only=["AGE"]) == ["a <DENIED>, <DENIED>"]
    assert masked("5 Annex Bob", deny=["/x B/"]) == ["<AGE> <NAME>"]
    keep = {"DEFAULT": {"operator": "keep"}}
    assert masked("Ann, Bob", deny=["Ann"], operators=keep) == ["<DENIED>, Bob"]


def test_adjacent_spans_of_one_type_are_merged():
    assert masked("AnnBob met Eve5", operators="number") == ["<NAME_1> met <NAME_2><AGE_1>"]


def test_python_masks_columns_of_a_data_frame():
    mask = partial(SpanFinder.mask, Rules())  # the method of trained models
    assert mask(["Ann", None, "", "5"]) == ["<NAME>", None, "", "<AGE>"]
    assert mask(["Ann"], operators="mask", threshold=0.95) == ["Ann"]
    for inputs in ("Ann", pd.DataFrame({"text": ["Ann"]})):
        with pytest.raises(TypeError, match="expected a list"):
            mask(inputs)


def test_lone_surrogates_are_question_marks_to_the_model_and_are_kept():
    recognizer = Rules()
    recognizer.scored_spans = Mock(side_effect=recognizer.scored_spans)
    assert Masker(recognizer).mask(["\ud83d Ann"]) == ["\ud83d <NAME>"]
    assert recognizer.scored_spans.call_args.args == (["? Ann"],)


def test_a_masker_can_be_pickled():
    masker = Masker(Rules(), "number", deny=["x"])
    assert masker.mask(["Ann x"]) == ["<NAME_1> <DENIED_1>"]
    assert pickle.loads(pickle.dumps(masker)).mask(["Bob Ann"]) == ["<NAME_2> <NAME_1>"]


def test_threads_share_the_numbers_of_a_mapping():
    mapping = Placeholders()
    masker = Masker(Rules(), "number", mapping)
    texts = [" ".join(f"{(number * step) % 97}" for number in range(50)) for step in range(40)]
    with ThreadPoolExecutor(8) as threads:
        new = [*threads.map(lambda text: masker.mask([text])[0], texts)]
    assert unmasked(mapping, new) == texts
    assert len({*mapping.values.values()}) == len(mapping.values)
