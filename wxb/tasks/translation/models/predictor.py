"""Trained translators: texts in, translations out."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.progress import track
from wxb.corpora.text.tokenizers import special_tokens, text_of, token_ids
from wxb.tasks.methods import Predictor, batches_by_length
from wxb.tasks.translation.params import Prediction

Ids = NDArray[np.int32]  # of the tokens of a source


class Translation(NamedTuple):
    """The translation of a text.

    Its score is log probability / length in tokens ** `length_penalty`. `attention` has the tokens
    of `source` and `target`, and their `weights` (T, S).
    """

    text: str
    score: float = 0.0
    truncated: bool = False  # whether the source was too long
    attention: Mapping[str, Any] | None = None


class TranslationPredictor(Predictor):
    """A predictor of translations."""

    hub_task, example = "translation", '"Good morning."'

    def output_fields(self, input_: str, prediction: Translation) -> dict[str, Any]:
        """The translation with its score, and `truncated` if so, as JSON."""
        result = {"translation": prediction.text, "score": prediction.score}
        return result | ({"truncated": True} if prediction.truncated else {})


class Translator(TranslationPredictor):
    """A trained model with its tokenizer, which has a bos and an eos token."""

    prediction = Prediction()

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder, still in training mode."""
        from wxb.tasks.translation.models.seq2seq import Seq2SeqModel

        arguments = (settings[name] for name in ("shape", "special", "max_length"))
        model = Seq2SeqModel(tokenizer, *arguments)
        model.load_weights(folder)
        return model

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Translation]:
        """Translate texts, blank ones to blank. `maps` texts of medium length also get attention.

        Texts longer than `max_length` tokens are truncated, with a warning on standard error.
        """
        translations = [Translation("") for _ in texts]
        ids = token_ids(self.tokenizer, texts)
        max_length = self.settings["max_length"]
        nonblank = [index for index, text in enumerate(texts) if text.strip()]
        mapped = {*_of_medium_length(nonblank, ids, self.prediction.maps)}
        if long := [index for index in nonblank if len(ids[index]) > max_length]:
            print(
                f"{len(long)} of {len(texts)} texts have more than {max_length} tokens (the first"
                f" {len(ids[long[0]])}) and are truncated",
                file=sys.stderr,
            )
        batches = batches_by_length([len(ids[i]) for i in nonblank], self.prediction.batch_size)
        for batch in track(batches, caption, len(batches), unit="batch"):
            indices = [nonblank[position] for position in batch]
            sources = [ids[index][:max_length] for index in indices]
            best = zip(*self.search(sources), strict=True)
            for index, source, (target, score) in zip(indices, sources, best, strict=True):
                text = text_of(self.tokenizer, target).strip()
                is_long = len(ids[index]) > max_length
                attention = self._attention(source, target) if index in mapped else None
                translations[index] = Translation(text, score, is_long, attention)
        return translations

    def search(self, sources: Sequence[Ids]) -> tuple[list[NDArray[np.int64]], list[float]]:
        """The best token ids for each source of a batch, without eos, and their rounded scores."""
        from wxb.models.decoding import search_targets

        tokens, scores = search_targets(
            self.model.model,
            **self.batch([{"input_ids": ids} for ids in sources]),
            max_new_tokens=self.settings["longest"],
            beams=self.prediction.beam,
            length_penalty=self.prediction.length_penalty,
        )
        eos = self.settings["special"]["eos"]
        rows = tokens[:, 0].cpu().numpy()
        best = [row[: int(np.argmax(row == eos))] if eos in row else row for row in rows]
        return best, [round(score, 4) for score in scores[:, 0].tolist()]

    def _attention(self, source: Ids, target: NDArray[np.int64]) -> dict[str, Any] | None:
        """Attention as in Translation, with "end" for eos or blank targets; None without any."""
        weights = self.model.attention_weights(source, target)
        if weights is None:
            return None
        target_ids = [*target.tolist(), self.settings["special"]["eos"]]
        return {
            "source": [text_of(self.tokenizer, [id_]).strip() for id_ in source.tolist()],
            "target": [text_of(self.tokenizer, [id_]).strip() or "end" for id_ in target_ids],
            "weights": weights.round(3).tolist(),
        }


def special_ids_and_size(tokenizer: Any) -> dict[str, int]:
    """The ids of `pad`, `bos` (the last before texts) and `eos`, and the vocabulary's `size`."""
    leading, _ = special_tokens(tokenizer)
    return {
        "pad": tokenizer.pad_token_id,
        "bos": int(leading[-1]),
        "eos": tokenizer.eos_token_id,
        "size": len(tokenizer),
    }


def _of_medium_length(indices: Sequence[int], ids: Sequence[Any], count: int) -> list[int]:
    """The first `indices` with a length from the median to the 90th percentile, at most `count`."""
    lengths = sorted(len(ids[index]) for index in indices)
    if not lengths:
        return []
    low, high = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    return [index for index in indices if low <= len(ids[index]) <= high][:count]
