"""Text classification by a prompt: a decoder answers an instruction with the name of a class."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice, takewhile, zip_longest
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from wxb.core.errors import WxbError
from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import read_columns, read_encoded
from wxb.corpora.text.templates import OWN, Template, message
from wxb.corpora.text.tokenizers import encode
from wxb.tasks.classification.models.predictor import LogitClassifier
from wxb.tasks.classification.params import Encoding
from wxb.tasks.methods import LazyItems, Network

GAP = " ... "  # between the start and the end of a truncated text


class PromptEncoding(Encoding, experiments.PromptEncoding):
    """How texts are truncated, and the prompt; a question without a chat template."""

    instruction: Annotated[str, Field(min_length=1)]


class PromptExperiment(experiments.Prompted):
    """A decoder that answers an instruction with the name of a class."""

    encoding: PromptEncoding


def truncate(encoded: Any, row: int, text: str, settings: Mapping[str, Any]) -> str:
    """A text cut to `max_length` tokens: the first, or with `ends` a quarter, GAP and the last."""
    first, last = map(int, encoded.row_splits[row : row + 2])
    room = settings["max_length"]
    if last - first <= room:
        return text
    if settings["keep"] == "start":
        return text[: encoded.starts[first + room]]
    head = room // 4
    return text[: encoded.starts[first + head]] + GAP + text[encoded.starts[last - room + head] :]


def prompt_builder(
    tokenizer: Any, encoded: Any, texts: Sequence[str], settings: Mapping[str, Any]
) -> Callable[[int], NDArray[np.int32]]:
    """A function from a text's index to prompt ids: instruction, `examples`, cut text, `begin`."""
    template = Template(tokenizer, OWN)

    def prompt(row: int) -> NDArray[np.int32]:
        turns = [*settings.get("examples", ()), (truncate(encoded, row, texts[row], settings),)]
        ids = template.prompt(settings["instruction"], turns)
        return np.concatenate([ids, np.array(settings["begin"], np.int32)])

    return prompt


class PromptClassifier(LogitClassifier):
    """A decoder whose logits are those of the tokens with which the classes' names differ."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """An `Answerer` with the decoder that `save` wrote, and the answers of the settings."""
        from wxb.tasks.classification.models.answerer import Answerer

        four_bit = settings["four_bit"]
        model: Any = Answerer.from_pretrained(folder, vocabulary=len(tokenizer), four_bit=four_bit)
        model.answers = settings["answers"]
        return model

    def text_outputs(self, texts: Sequence[str], *, caption: str) -> Any:
        """A mapping of outputs by name for each text, from its prompt, in order."""
        prompt = prompt_builder(self.tokenizer, encode(self.tokenizer, texts), texts, self.settings)
        items = [{"input_ids": prompt(row)} for row in range(len(texts))]
        return self.outputs(items, caption=caption)

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set `settings["examples"]`: `shots`, by class in turn; others set the temperature."""
        of_class = [[r for r in records if r.gold == label] for label in self.labels]
        in_turn = filter(None, chain.from_iterable(zip_longest(*of_class)))
        examples = [*islice(in_turn, self.settings["shots"])]
        encoded = encode(self.tokenizer, [r.input for r in examples])
        self.settings["examples"] = [
            (truncate(encoded, row, r.input, self.settings), r.gold)
            for row, r in enumerate(examples)
        ]
        super().calibrate([r for r in records if r not in examples], caption=caption)


class PromptMethod(Network):
    """A decoder that reads an instruction and the text as a message."""

    experiment: PromptExperiment
    PREDICTOR = PromptClassifier

    def __post_init__(self) -> None:
        """Add `plain` to a tokenizer without a template, in place."""
        super().__post_init__()
        Template.add(self.tokenizer, OWN if self.tokenizer.chat_template else "plain")

    def max_text_tokens(self) -> int:
        """`encoding.max_length`, in which tokens of the prompt do not count."""
        return self.experiment.encoding.max_length

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """One lazy item per text: its prompt without examples, and the index of its class."""
        texts, labels = [r.input for r in records], read_columns(targets, ["labels"])[0]["labels"]
        settings = self.predictor_settings(targets) | self.model_settings()
        prompt = prompt_builder(self.tokenizer, read_encoded(features), texts, settings)
        return LazyItems(
            range(len(texts)), lambda row: {"input_ids": prompt(row), "labels": labels[row]}
        )

    def new_model(self, backbone: Path) -> Any:
        """The decoder of a backbone, which chooses among the tokens `answers`."""
        from wxb.tasks.classification.models.answerer import Answerer

        tuning, size = self.experiment.tuning, len(self.tokenizer)
        model: Any = Answerer.from_backbone(backbone, tuning, vocabulary=size)
        model.answers = self.model_settings()["answers"]
        return model

    def model_settings(self, targets: Path | None = None) -> dict[str, Any]:
        """Token ids: `begin`, the common start of all answers, and `answers`, each one's next.

        Does not read `targets`. Raises WxbError if two answers have the same next token.
        """
        template, question = Template(self.tokenizer, OWN), message("user", "0")
        start = len(template.tokens([question], answer_next=True).ids)
        turns = ([question, message("assistant", label)] for label in self.labels)
        rows = [template.tokens(conversation).ids[start:].tolist() for conversation in turns]
        shared = takewhile(lambda column: len({*column}) == 1, zip(*rows, strict=False))
        begin = [column[0] for column in shared]
        answers = [row[len(begin)] for row in rows]
        if len({*answers}) < len(answers):
            raise WxbError(
                f"some of the classes {', '.join(self.labels)} begin with the same token; give them"
                " other names in `labels` of the corpus"
            )
        return {"begin": begin, "answers": answers}
