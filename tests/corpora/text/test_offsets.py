"""Wrong offsets are repaired by the spelling of the tokens, or are an error."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.corpora.text import test_tokenizers
from wxb.core.errors import WxbError
from wxb.corpora.text.offsets import token_offsets
from wxb.corpora.text.tokenizers import train

TEXTS = test_tokenizers.TEXTS[:-1]


def with_nfc():
    """As Qwen: byte-level BPE of composed letters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def unigram(scheme):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=230, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def with_byte_fallback(normalizer):
    """As LLaMA-2: characters outside the vocabulary are spelled `<0xE6>`."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizer
    reserved = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=reserved, show_progress=False)
    tokenizer.train_from_iterator(TEXTS[:2] * 3, trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = state["added_tokens"][:1]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), unk_token="<unk>"
    )


def wordpiece(texts, **options):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=["[UNK]"], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


MAKERS = {
    "wordpiece": lambda: train("wordpiece", 600, TEXTS * 3),
    "wordpiece, lower case": lambda: wordpiece(TEXTS[:1] * 3, lowercase=True),
    "byte-level-bpe": lambda: train("byte-level-bpe", 600, TEXTS * 3),
    "nfc": with_nfc,
    "unigram": lambda: unigram("never"),
    "byte fallback": lambda: with_byte_fallback(normalizers.Replace(" ", "▁")),
}


@pytest.fixture(scope="module")
def tokenizers():
    return {name: make() for name, make in MAKERS.items()}


each = pytest.mark.parametrize("name", MAKERS)


def raw(tokenizer, texts):
    """The tokenizer's own ids and offsets, and the row of each token."""
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = True
    encodings = backend.encode_batch(texts, add_special_tokens=False)
    ids = np.array([id_ for e in encodings for id_ in e.ids], np.int32)
    offsets = np.array([pair for e in encodings for pair in e.offsets], np.int64).reshape(-1, 2)
    return ids, offsets, np.repeat(np.arange(len(texts)), [len(e) for e in encodings])


def trimmed(offsets, rows, texts):
    """The offsets without outer white space, token by token."""
    ranges, reached = [], 0
    for index, (row, (start, end)) in enumerate(zip(rows, offsets, strict=True)):
        reached = reached if index and rows[index - 1] == row else 0
        visible = [i for i in range(start, end) if not texts[row][i].isspace()]
        ranges.append((visible[0], visible[-1] + 1) if visible else (reached, reached))
        reached = ranges[-1][1]
    return ranges


def checked(tokenizer, texts, change=lambda offsets, *_: offsets):
    """The checked (start, end) of tokens, for offsets changed by `change`."""
    ids, offsets, rows = raw(tokenizer, texts)
    starts, ends = token_offsets(
        tokenizer.backend_tokenizer, "name", ids, change(offsets, rows, texts), rows, texts
    )
    assert starts.dtype == ends.dtype == np.int32
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def spans(tokenizer, text):
    """(piece, covered text) of every token."""
    ids = raw(tokenizer, [text])[0]
    pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    return [(p, text[a:b]) for p, (a, b) in zip(pieces, checked(tokenizer, [text]), strict=True)]


def in_bytes(offsets, rows, texts):
    edges = [
        [len(texts[row][:index].encode()) for index in pair]
        for row, pair in zip(rows, offsets, strict=True)
    ]
    return np.array(edges, np.int64).reshape(-1, 2)


WRONG = {
    "empty, as LLaMA-3's were": lambda offsets, *_: offsets[:, [0, 0]],
    "in bytes": in_bytes,
    "late": lambda offsets, *_: offsets + 1,
    "early": lambda offsets, *_: offsets - 1,
    "back to front": lambda offsets, *_: offsets[:, ::-1],
    "of another text": lambda offsets, *_: offsets[::-1],
    "everything": lambda offsets, rows, texts: np.array(
        [(0, len(texts[row])) for row in rows], np.int64
    ).reshape(-1, 2),
}


# Right offsets

# Only white space that the tokenizers saw in training: unknown white space has no token.
letters = st.one_of(
    st.sampled_from(" \t\r\n\u00a0\u300009aZ.,#\u200d\u0301😀👨李م्"),
    st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S"], exclude_characters="▁"),
)
random_texts = st.lists(st.text(letters, max_size=24), max_size=4)


@pytest.mark.parametrize("name", ["wordpiece", "byte-level-bpe", "unigram", "byte fallback"])
@given(texts=random_texts)
def test_correct_offsets_are_kept(tokenizers, name, texts):
    _, offsets, rows = raw(tokenizers[name], texts)
    expected = trimmed(offsets, rows, texts)
    assert checked(tokenizers[name], texts) == expected


@each
@given(texts=random_texts)
def test_tokens_cover_texts_in_order(tokenizers, name, texts):
    rows = raw(tokenizers[name], texts)[2]
    ranges = checked(tokenizers[name], texts)
    for row, text in enumerate(texts):
        own = [pair for pair, of in zip(ranges, rows, strict=True) if of == row]
        assert all(0 <= a <= b <= len(text) and text[a:b] == text[a:b].strip() for a, b in own)
        assert all(a <= c and b <= d for (a, b), (c, d) in pairwise(own))
        covered = {i for a, b in own for i in range(a, b)}
        if "wordpiece" not in name:  # BERT drops controls, and accents in lower case
            assert covered >= {i for i, c in enumerate(text) if not c.isspace()}


@each
@pytest.mark.parametrize("texts", [[], [""], ["", " \n"], ["\u3000", "", "\t"]])
def test_texts_without_anything_visible(tokenizers, name, texts):
    assert all(start == end == 0 for start, end in checked(tokenizers[name], texts))


def test_a_character_in_several_tokens_belongs_to_each(tokenizers):
    assert spans(tokenizers["byte fallback"], "a🙂 b") == [
        ("a", "a"),
        *((f"<0x{byte:02X}>", "🙂") for byte in "🙂".encode()),
        ("▁", ""),
        ("<0x62>", "b"),
    ]


@each
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_offsets_are_an_error(tokenizers, name, change):
    with pytest.raises(WxbError, match=r"^tokenizer name: wrong offsets in '"):
        checked(tokenizers[name], TEXTS, change)


@each
def test_one_missing_token_among_many_is_an_error(tokenizers, name):
    tokenizer, texts = tokenizers[name], TEXTS[:2]  # without combining marks
    offsets, right = raw(tokenizer, texts)[1], checked(tokenizer, texts)
    alone = [i for i, pair in enumerate(right) if pair[0] < pair[1] and right.count(pair) == 1]
    for token in alone[::5]:
        changed = offsets.copy()
        changed[token, 1] = changed[token, 0]
        with pytest.raises(WxbError, match="no token covers"):
            checked(tokenizer, texts, lambda *_, changed=changed: changed)


def test_letters_composed_by_the_normalizer_keep_their_accents(tokenizers):
    # tokenizers 0.23 returns 0:1 for both tokens of the é, without the accent.
    assert [text for _, text in spans(tokenizers["nfc"], "e\u0301t")] == ["e\u0301", "e\u0301", "t"]
    hangul = "\u1112\u1161\u11ab!"
    assert {text for _, text in spans(tokenizers["nfc"], hangul)} == {hangul[:-1], "!"}


@pytest.mark.parametrize("scheme", ["always", "first"])
def test_a_prepended_space_of_its_own_covers_nothing(scheme):
    # In tokenizers 0.23 it takes the first letter: tokenizers issues 1018 and 1775.
    tokenizer = unigram(scheme)
    assert spans(tokenizer, "李明 李")[:3] == [("▁", ""), ("李", "李"), ("明", "明")]
    llama_2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    assert spans(with_byte_fallback(llama_2), "é")[:2] == [("▁", ""), ("<0xC3>", "é")]


def test_only_characters_that_the_tokenizer_always_drops_need_no_token():
    tokenizer = wordpiece(["a-b"], lowercase=True)
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("-", "removed"), pre_tokenizers.BertPreTokenizer()]
    )
    assert [text for _, text in spans(tokenizer, "a-b")] == ["a", "b"]
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("(?<=a)-"), "removed")
    with pytest.raises(WxbError, match="no token covers '-'"):
        checked(tokenizer, ["a-b"])
