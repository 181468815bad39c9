"""Tokenizers are reproducible, and their offsets select the tokenized characters."""

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora.text import tokenizers
from wxb.corpora.text.tokenizers import SavedTokenizer, encode, special_tokens, token_ids, train

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
KINDS = ["byte-level-bpe", "wordpiece"]
# More characters than fit into the vocabulary, so that their order could depend on chance.
HANGUL = ["".join(chr(0xAC00 + (7 * word + i) % 700) for i in range(4)) for word in range(300)]
TEXTS = [
    "Call Zoë Müller-Straße at +49 30 1234567, please.",
    "李明住在北京市朝阳区88号。请打电话给他！",
    "اتصل بأحمد على الرقم ٠١٢٣ في القاهرة.",
    "राम का फ़ोन नंबर ९८७६ है और वह दिल्ली में रहता है।",
    "A family: 👨‍👩‍👧 and a flag 🇩🇪 👍🏽!",
    "one\r\ntwo\tthree\u00a0four\u3000five",
    "Où êtes-vous né, Éloïse ? À Besançon, le 12/05/1987.",
]
EDGE_CASES = [*TEXTS, "", " ", "\r\n\t", "  Hi  there \n", "e\u0301te\u0301", "\ufeffx\u200by\x00z"]

each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def trained():
    return {kind: train(kind, 600, TEXTS * 3) for kind in KINDS}


def rows(encoded):
    """(id, start, end) of every token of each text."""
    tokens = list(zip(*(values.tolist() for values in encoded[:3]), strict=True))
    return [tokens[start:end] for start, end in pairwise(encoded.row_splits)]


# Training


@pytest.mark.slow
def test_training_is_the_same_in_every_process(tmp_path):
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]; from test_tokenizers import *\n"
        "for kind in KINDS:\n"
        "    train(kind, 300, TEXTS + HANGUL).save_pretrained(f'{sys.argv[3]}/{kind}')"
    )
    for seed in ("1", "77"):
        subprocess.run(
            [sys.executable, "-c", code, *map(str, (ROOT, HERE, tmp_path / seed))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    for kind in KINDS:
        train(kind, 300, TEXTS + HANGUL).save_pretrained(tmp_path / "here" / kind)
        files = [tmp_path / run / kind / "tokenizer.json" for run in ("1", "77", "here")]
        assert len({hashlib.sha256(file.read_bytes()).hexdigest() for file in files}) == 1


def test_special_tokens_are_as_documented(trained):
    for kind, expected in {
        "wordpiece": (["[CLS]"], ["[SEP]"]),
        "byte-level-bpe": (["<s>"], []),
    }.items():
        before, after = (
            trained[kind].convert_ids_to_tokens(ids) for ids in special_tokens(trained[kind])
        )
        assert (before, after) == expected


@each_kind
def test_tokens_are_those_of_transformers(trained, kind):
    before, after = special_tokens(trained[kind])
    for text in EDGE_CASES:
        ids = [*before, *encode(trained[kind], [text]).ids, *after]
        assert trained[kind](text)["input_ids"] == ids


# Offsets


@pytest.mark.parametrize(
    ("kind", "mark"), [("wordpiece", "[SEP]"), ("wordpiece", "[MASK]"), ("byte-level-bpe", "<s>")]
)
def test_a_special_token_spelled_out_in_a_text_is_text(trained, kind, mark):
    text, id_ = f"é {mark}12 x{mark}", trained[kind].convert_tokens_to_ids(mark)
    encoded = encode(trained[kind], [text])
    covered = {i for a, b in zip(encoded.starts, encoded.ends, strict=True) for i in range(a, b)}
    assert covered == {i for i, c in enumerate(text) if not c.isspace()}
    inside = encoded.ids[encoded.ends > encoded.starts]
    assert id_ not in inside
    assert len(inside) == sum(len(token_ids(trained[kind], [part])[0]) for part in text.split())
    (plain,), (special,) = (token_ids(trained[kind], [mark], parse_special=s) for s in (0, 1))
    assert len(plain) > 1
    assert special.tolist() == [id_]
    # This has no effect on later texts.
    assert encode(trained[kind], [text]).ids.tolist() == encoded.ids.tolist()


@each_kind
def test_padding_and_truncation_of_a_file_are_ignored(trained, kind, tmp_path):
    trained[kind].save_pretrained(tmp_path)
    other = tokenizers.load(tmp_path)
    other.backend_tokenizer.enable_truncation(3)
    other.backend_tokenizer.enable_padding(length=99)
    assert [ids.tolist() for ids in special_tokens(other)] == [
        ids.tolist() for ids in special_tokens(trained[kind])
    ]
    other.backend_tokenizer.enable_truncation(3)
    assert rows(encode(other, EDGE_CASES)) == rows(encode(trained[kind], EDGE_CASES))
    for text, ids in zip(EDGE_CASES, token_ids(other, EDGE_CASES), strict=True):
        assert ids.dtype == np.int32
        assert ids.tolist() == encode(trained[kind], [text]).ids.tolist()


alphabets = st.text(
    st.one_of(
        st.sampled_from(" \t\r\n09ae\u0301\u200d\u3000😀👨李م्"), st.characters(codec="utf-8")
    ),
    max_size=24,
)


@each_kind
@settings(deadline=None)
@given(texts=st.lists(alphabets, max_size=4))
def test_a_batch_is_encoded_like_single_texts(trained, kind, texts):
    together = rows(encode(trained[kind], texts))
    alone = [row for text in texts for row in rows(encode(trained[kind], [text]))]
    assert together == alone


@each_kind
def test_chunks_change_nothing(trained, kind, monkeypatch):
    expected = rows(encode(trained[kind], EDGE_CASES))
    monkeypatch.setattr(tokenizers, "CHUNK", 3)
    assert rows(encode(trained[kind], EDGE_CASES)) == expected
    assert rows(encode(trained[kind], [])) == []


# Loading


@pytest.mark.parametrize("has_padding", [True, False])
@each_kind
def test_a_saved_tokenizer_is_the_same_without_transformers(trained, kind, has_padding, tmp_path):
    trained[kind].save_pretrained(tmp_path)
    if not has_padding:
        file = tmp_path / "tokenizer_config.json"
        file.write_text(file.read_text().replace('"pad_token"', '"eos_token"'))
    theirs, saved = tokenizers.load(tmp_path), SavedTokenizer(tmp_path)
    for name in ("unk_token_id", "eos_token_id", "pad_token_id"):
        assert getattr(saved, name) == getattr(theirs, name)
    assert len(saved) == len(theirs)
    assert rows(encode(saved, EDGE_CASES)) == rows(encode(theirs, EDGE_CASES))
    for ours, expected in zip(special_tokens(saved), special_tokens(theirs), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_saved_tokenizer_keeps_its_chat_template(trained, tmp_path):
    trained["byte-level-bpe"].save_pretrained(tmp_path / "one")
    (tmp_path / "one/chat_template.jinja").write_text("{{ messages }}")
    SavedTokenizer(tmp_path / "one").save_pretrained(tmp_path / "two")
    assert SavedTokenizer(tmp_path / "two").chat_template == "{{ messages }}"
