"""Tokenizers whose tokens are whole words, for models that count words or learn their own vectors.

They are of the tokenizers library, kept as its files and read without transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]"}

# Chinese and Japanese have no spaces between words: each of their characters stands alone.
_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}"
WORD = rf"[{_ALONE}]|[\w\p{{N}}&&[^{_ALONE}]]+|[^\w\p{{N}}\s]"


def train(vocabulary: int, texts: Sequence[str]) -> Tokenizer:
    """The words and marks of texts in lower case, the most frequent first; others are [UNK].

    Of equally frequent ones the first in the alphabet come first, so that the same texts give the
    same tokenizer.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocabulary, special_tokens=[*SPECIAL.values()], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
