import re
from collections import Counter
from itertools import chain, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demos.pii import generate
from demos.pii.persona import Persona
from demos.pii.scenes import load_scenes, load_templates, wording_text
from demos.pii.values import LANGUAGES

each_language = pytest.mark.parametrize("language", LANGUAGES)


def records(language, labelled=0, unlabelled=0, seed=0):
    return list(generate(labelled=labelled, unlabelled=unlabelled, languages=[language], seed=seed))


@each_language
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_texts_and_spans_are_clean_and_depend_on_the_seed(language, seed):
    generated = records(language, 20, 20, seed)
    assert generated == records(language, 20, 20, seed)
    assert generated != records(language, 20, 20, seed + 1)
    for record in generated:
        text, spans = record["input"], record["spans"] or []
        prefix, scene, version = record["template"].split("/")
        assert (prefix, scene) == (record["language"], record["scene"]) == (language, scene)
        assert f"{scene}/{version}" in load_templates(language)
        assert text == text.strip()
        assert not set("[]{}") & set(text)
        assert "  " not in text
        assert all(left["end"] <= right["start"] for left, right in pairwise(spans))
        for span in spans:
            value = text[span["start"] : span["end"]]
            assert value
            assert value == value.strip()
            if language == "en":
                assert not f" {text}"[span["start"]].isalnum(), text
                assert not f"{text} "[span["end"]].isalnum(), text


@each_language
def test_every_type_is_labelled_and_a_few_records_have_none(language):
    labelled = records(language, labelled=2000)
    assert len({span["type"] for record in labelled for span in record["spans"]}) == 20
    assert 0.05 < sum(not record["spans"] for record in labelled) / 2000 < 0.11


@each_language
def test_labels_follow_the_template(language, monkeypatch):
    """With slot names as values, exactly those in upper case are labelled."""
    monkeypatch.setattr(Persona, "value", lambda self, kind, digit="": f"<{kind}>")
    for record in records(language, labelled=200):
        text = record["input"]
        labelled = Counter(text[s["start"] : s["end"]] for s in record["spans"])
        assert labelled == Counter(re.findall("<[A-Z]+>", text))
        assert all(text[s["start"] : s["end"]] == f"<{s['type']}>" for s in record["spans"])


def wordings(template):
    return {wording_text(wording) for sentence in template for wording in sentence}


@each_language
def test_templates_share_no_wording_and_tear_no_paraphrase(language):
    """Otherwise a held-out template could have a training sentence, or one but for a word."""
    assert {*load_scenes(language)} == {*load_scenes("en")}  # a held-out scene is new in both
    templates = {name: wordings(template) for name, template in load_templates(language).items()}
    assert sum(map(len, templates.values())) == len(set().union(*templates.values()))
    for paraphrase in chain(*chain(*load_scenes(language).values())):
        own = {wording_text(tuple(chain(*choice))) for choice in product(*paraphrase)}
        shared = sorted(len(template & own) for template in templates.values() if template & own)
        # Wordings of another paraphrase may belong to that one; the rest are together.
        assert sum(shared[:-1]) <= 2
        assert sum(shared) == len(own)


@settings(max_examples=25, deadline=None)
@given(labelled=st.integers(0, 30), unlabelled=st.integers(0, 30))
def test_languages_take_turns_and_do_not_depend_on_each_other(labelled, unlabelled):
    both = [*generate(labelled=labelled, unlabelled=unlabelled, languages=LANGUAGES, seed=3)]
    parts = both[:labelled], both[labelled:]
    assert len(both) == labelled + unlabelled
    for kind, part in zip("lu", parts, strict=True):
        assert all((record["spans"] is None) == (kind == "u") for record in part)
        assert [record["id"] for record in part] == [
            f"{LANGUAGES[index % 2]}-{kind}-{index // 2 + 1:06}" for index in range(len(part))
        ]
    alone = records("zh", labelled // 2, unlabelled // 2, seed=3)
    assert [record for record in both if record["language"] == "zh"] == alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"languages": []}, r"\[\]"),
        ({"languages": ["en", "en"]}, "each once"),
        ({"languages": ["en", "xx"]}, "xx"),
    ],
)
def test_invalid_arguments_are_errors_before_iteration(change, message):
    with pytest.raises(ValueError, match=message):
        generate(**{"labelled": 1, "unlabelled": 1, "languages": ["en"], "seed": 0, **change})
