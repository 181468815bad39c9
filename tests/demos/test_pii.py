import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from itertools import chain, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demos.pii import generate, scenes
from demos.pii.persona import Persona
from demos.pii.pools import load_pools
from demos.pii.scenes import load_scenes, load_templates, parse, slots, wording_text
from demos.pii.values import LANGUAGES, LOOKALIKES, TYPES

SEEDS = st.integers(min_value=0, max_value=2**32)

each_language = pytest.mark.parametrize("language", LANGUAGES)


def records(language, labelled=0, unlabelled=0, seed=0):
    return list(generate(labelled=labelled, unlabelled=unlabelled, languages=[language], seed=seed))


@each_language
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_spans_are_sorted_disjoint_and_without_white_space(language, seed):
    for record in records(language, labelled=40, seed=seed):
        text, spans = record["input"], record["spans"]
        assert text == text.strip()
        for span in spans:
            value = text[span["start"] : span["end"]]
            assert value
            assert value == value.strip()
            assert span["type"] in TYPES
        assert all(left["end"] <= right["start"] for left, right in pairwise(spans))


@each_language
def test_spans_are_not_next_to_letters(language):
    if language == "zh":
        pytest.skip("Chinese has no spaces")
    for record in records(language, labelled=500):
        text = f" {record['input']} "
        for span in record["spans"]:
            assert not text[span["start"]].isalnum(), text
            assert not text[span["end"] + 1].isalnum(), text


@each_language
def test_text_has_no_leftover_syntax_or_double_space(language):
    for record in records(language, unlabelled=500):
        assert not set("[]{}") & set(record["input"])
        assert "  " not in record["input"]


@each_language
def test_a_few_labelled_records_have_no_span(language):
    empty = sum(not record["spans"] for record in records(language, labelled=2000))
    assert 0.05 < empty / 2000 < 0.11


@each_language
def test_every_type_occurs_among_the_labels(language):
    types = {s["type"] for record in records(language, labelled=1500) for s in record["spans"]}
    assert types == set(TYPES)


@each_language
def test_every_type_is_in_at_least_five_scenes(language):
    scenes = load_scenes(language)
    assert len(scenes) >= 60
    assert all(len(sentences) == 6 for sentences in scenes.values())
    counts = Counter(
        type_
        for sentences in scenes.values()
        for type_ in sorted(
            {slot.type for s in sentences for text in s for slot in slots(text) if slot.type}
        )
    )
    assert {type_: counts[type_] for type_ in TYPES if counts[type_] < 5} == {}


@each_language
def test_every_sentence_has_a_slot_and_only_types_are_labelled(language):
    for paraphrases in chain(*load_scenes(language).values()):
        assert len(paraphrases) == 3
        for paraphrase in paraphrases:
            assert slots(paraphrase)
            for slot in slots(paraphrase):
                assert slot.type == (slot.kind if slot.kind in TYPES else None)
                assert slot.type or slot.kind in LOOKALIKES


@each_language
def test_labels_follow_the_template(language, monkeypatch):
    """With slot names as values, exactly those in upper case are labelled."""
    monkeypatch.setattr(Persona, "value", lambda self, kind, digit="": f"<{kind}>")
    for record in records(language, labelled=200):
        text = record["input"]
        labelled = Counter(text[s["start"] : s["end"]] for s in record["spans"])
        assert labelled == Counter({f"<{t}>": text.count(f"<{t}>") for t in TYPES})
        assert all(text[s["start"] : s["end"]] == f"<{s['type']}>" for s in record["spans"])


@each_language
def test_a_record_keeps_its_persona(language, monkeypatch):
    calls, personas = [], []  # personas are kept, so that their ids are distinct
    draw = Persona._draw

    def spy(self, kind, digit):
        personas.append(self)
        calls.append((id(self), kind, digit))
        return draw(self, kind, digit)

    monkeypatch.setattr(Persona, "_draw", spy)
    records(language, unlabelled=100)
    assert len(calls) == len(set(calls))


@each_language
def test_unlabelled_documents_have_one_to_six_sentences(language, monkeypatch):
    lengths = Counter()
    module = sys.modules[generate.__module__]
    render = module._render

    def spy(sentences, *args):
        lengths[len(sentences)] += 1
        return render(sentences, *args)

    monkeypatch.setattr(module, "_render", spy)
    assert all(record["spans"] is None for record in records(language, unlabelled=300))
    assert sorted(lengths) == [1, 2, 3, 4, 5, 6]
    lengths.clear()
    records(language, labelled=300)
    assert sorted(lengths) == [1, 2]


@each_language
def test_records_name_their_scene(language):
    scenes = load_scenes(language)
    for record in records(language, labelled=50, unlabelled=50):
        prefix, scene, version = record["template"].split("/")
        assert prefix == record["language"] == language
        assert scene == record["scene"]
        assert scene in scenes
        assert f"{scene}/{version}" in load_templates(language)


def wordings(template):
    return {wording_text(wording) for sentence in template for wording in sentence}


@each_language
def test_templates_have_no_common_wording(language):
    """Otherwise a held-out template could have sentences of the training data."""
    counts = Counter(chain(*map(wordings, load_templates(language).values())))
    assert [wording for wording, count in counts.items() if count > 1] == []


def texts(paraphrase):
    return {wording_text(tuple(chain(*choice))) for choice in product(*paraphrase)}


@each_language
def test_paraphrases_are_not_divided_among_templates(language):
    """Otherwise a held-out wording could differ from training by one word."""
    templates = {name: wordings(template) for name, template in load_templates(language).items()}
    for paraphrase in chain(*chain(*load_scenes(language).values())):
        own = texts(paraphrase)
        shared = sorted(len(template & own) for template in templates.values() if template & own)
        # Wordings of another paraphrase may belong to that one; the rest are together.
        assert sum(shared[:-1]) <= 2
        assert sum(shared) == len(own)


@each_language
def test_templates_have_all_sentences_of_a_scene_and_mix_styles(language):
    templates = load_templates(language)
    assert len(templates) == 3 * len(load_scenes(language))
    for scene, sentences in load_scenes(language).items():
        for version in "123":
            template = templates[f"{scene}/{version}"]
            assert len(template) == 6
            assert min(map(len, template)) >= 3
            styles = [
                [wordings([sentence]) <= texts(paraphrase) for paraphrase in paraphrases].index(
                    True
                )
                for sentence, paraphrases in zip(template, sentences, strict=True)
            ]
            assert sorted(styles) == [0, 0, 1, 1, 2, 2]


def test_scenes_have_the_same_names_in_every_language():
    """So a held-out scene is new in all of them."""
    names = {language: {*load_scenes(language)} for language in LANGUAGES}
    assert names["en"] == names["de"] == names["zh"]
    assert names["es"] == names["fr"]
    assert len(names["en"] & names["es"]) == 59


@each_language
@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_the_seed_determines_the_records(language, seed):
    first = records(language, 20, 20, seed)
    assert first == records(language, 20, 20, seed)
    assert first != records(language, 20, 20, seed + 1)


def test_same_records_in_another_process():
    code = (
        "import json; from demos.pii import generate;"
        f"print(json.dumps(list(generate(labelled=30, unlabelled=30, languages={LANGUAGES!r},"
        " seed=7))))"
    )
    expected = list(generate(labelled=30, unlabelled=30, languages=LANGUAGES, seed=7))
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(process.stdout) == expected


@settings(max_examples=25, deadline=None)
@given(labelled=st.integers(0, 30), unlabelled=st.integers(0, 30))
def test_counts_are_divided_evenly_among_languages(labelled, unlabelled):
    out = list(generate(labelled=labelled, unlabelled=unlabelled, languages=LANGUAGES, seed=1))
    with_spans = [record for record in out if record["spans"] is not None]
    assert len(with_spans) == labelled
    assert len(out) - len(with_spans) == unlabelled
    assert len({record["id"] for record in out}) == len(out)
    for part in (with_spans, [record for record in out if record["spans"] is None]):
        shares = Counter(record["language"] for record in part)
        assert max(shares.values(), default=0) - min(shares[x] for x in LANGUAGES) <= 1
        for left, right in pairwise(part):
            assert left["language"] != right["language"]


def test_a_language_does_not_depend_on_the_others():
    alone = records(LANGUAGES[0], labelled=5, seed=3)
    together = generate(labelled=5 * len(LANGUAGES), unlabelled=0, languages=LANGUAGES, seed=3)
    assert [record for record in together if record["language"] == LANGUAGES[0]] == alone


def test_ids_have_language_kind_and_number():
    ids = [r["id"] for r in generate(labelled=2, unlabelled=1, languages=["en"], seed=0)]
    assert ids == ["en-l-000001", "en-l-000002", "en-u-000001"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labelled": -1}, "negative"),
        ({"unlabelled": -1}, "negative"),
        ({"languages": []}, "each once"),
        ({"languages": ["en", "en"]}, "each once"),
        ({"languages": ["en", "xx"]}, r"xx.*expected some of \['en', 'de'"),
    ],
)
def test_invalid_arguments_are_errors_before_iteration(change, message):
    arguments = {"labelled": 1, "unlabelled": 1, "languages": ["en"], "seed": 0, **change}
    with pytest.raises(ValueError, match=message):
        generate(**arguments)


@pytest.mark.parametrize(
    "text",
    ["[a|b", "a]", "[a [b|c]]", "{DATE", "DATE}", "{}", "{NAME}", "{clock}", "{DATE1}", "{DATE 2}"],
)
def test_malformed_templates_are_errors(text):
    with pytest.raises(ValueError, match="template"):
        parse(text)


def test_a_scene_in_two_files_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(scenes, "_TEMPLATES", tmp_path)
    for name in ("home", "work"):
        path = tmp_path / "xx" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("visit:\n  - - Age {AGE}\n")
    with pytest.raises(ValueError, match="another file has"):
        load_scenes("xx")


def test_alternatives_may_be_empty_or_have_slots():
    sentence = parse("On {DATE2}[| at {TIME}|, {order}] we met.")
    assert [len(segment) for segment in sentence] == [1, 3, 1]
    assert [(s.kind, s.digit, s.type) for s in slots(sentence)] == [
        ("DATE", "2", "DATE"),
        ("TIME", "", "TIME"),
        ("order", "", None),
    ]


@each_language
def test_names_come_from_large_pools(language):
    pools = load_pools(language)
    given_names = sum(map(len, pools.given))
    assert given_names * len(pools.surname) >= 1500
    assert min(map(len, (pools.street, pools.city, pools.handle))) >= 140


@pytest.mark.parametrize(
    ("language", "kind"), list(product(LANGUAGES, [*TYPES, *LOOKALIKES])), ids="-".join
)
def test_every_language_has_values_for_every_slot(language, kind):
    persona = Persona(language, random.Random(0))
    values = [persona.value(kind, str(i)) for i in range(30)]
    assert all(value and value == value.strip() for value in values)
    assert not set("#@?{}|") & set("".join(values).replace("@", "" if kind == "EMAIL" else "@"))
    assert len(set(values)) > 1


@each_language
@pytest.mark.parametrize("kind", ["EMAIL", "website"])
def test_addresses_have_reserved_domains(language, kind):
    values = [Persona(language, random.Random(i)).value(kind) for i in range(300)]
    assert all(re.search(r"\.example(\.(com|org|net))?$", v) for v in values)
    assert len(set(values)) > 250
