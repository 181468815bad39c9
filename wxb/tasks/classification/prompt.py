"""Text classification by a prompt: a decoder answers an instruction with the name of a class."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text.templates import Template, message
from wxb.corpora.text.tokenizers import encode, text_of
from wxb.tasks.classification.models.predictor import LogitClassifier
from wxb.tasks.classification.params import Prompt
from wxb.tasks.methods import LENGTHS, Item, Items, LazyItems, Network, inputs


def prompted(items: Items, tokenizer: Any, settings: Mapping[str, Any]) -> LazyItems:
    """The same items; their tokens are those of a prompt: instruction, examples and text."""
    template = Template.for_prompts(tokenizer)

    def item(index: int) -> Item:
        turns = [*settings.get("examples", ()), (text_of(tokenizer, items[index]["input_ids"]),)]
        return {**items[index], "input_ids": template.prompt(settings["instruction"], turns)}

    return LazyItems(range(len(items)), item)


class PromptClassifier(LogitClassifier):
    """A decoder whose logits are those of the first tokens of the classes' names."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the decoder that `save` wrote to a folder."""
        from wxb.tasks.classification.models.answerer import Answerer

        four_bit = settings["four_bit"]
        model: Any = Answerer.from_pretrained(folder, tokens=len(tokenizer), four_bit=four_bit)
        model.answers = settings["answers"]
        return model

    def outputs(self, items: Items, *, caption: str) -> Any:
        """The logits for each prompt."""
        return super().outputs(prompted(items, self.tokenizer, self.settings), caption=caption)

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Take the examples from the records, of each class in turn; the others calibrate."""
        of_class = [[r for r in records if r.gold == label] for label in self.labels]
        turns = chain.from_iterable(zip_longest(*of_class))
        examples = [*islice(filter(None, turns), self.settings["shots"])]
        lengths = {key: self.settings[key] for key in LENGTHS}
        encoded = encode(self.tokenizer, [r.input for r in examples])
        rows = [item["input_ids"] for item in inputs(encoded, self.tokenizer, **lengths)]
        self.settings["examples"] = [
            (text_of(self.tokenizer, ids), r.gold) for ids, r in zip(rows, examples, strict=True)
        ]
        super().calibrate([r for r in records if r not in examples], caption=caption)


class PromptMethod(Network):
    """A decoder that reads an instruction and the text as a message."""

    experiment: Prompt
    PREDICTOR = PromptClassifier

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """One item per text: its prompt, and the index of its class."""
        items = super().items(features, targets, records)
        return prompted(items, self.tokenizer, self.settings(targets))

    def model(self, backbone: Path) -> Any:
        """The decoder of a backbone."""
        from wxb.tasks.classification.models.answerer import Answerer

        tuning, tokens = self.experiment.tuning, len(self.tokenizer)
        model: Any = Answerer.from_backbone(backbone, tuning, tokens=tokens)
        model.answers = self._answers()
        return model

    def shape(self, targets: Path) -> dict[str, Any]:
        """The answers, as tokens."""
        return {"answers": self._answers()}

    def _answers(self) -> list[int]:
        """The first token of each class's name as an answer. Raises WxbError if two are equal."""
        template, question = Template.for_prompts(self.tokenizer), message("user", "0")
        start = len(template.tokens([question], answer_next=True).ids)
        turns = ([question, message("assistant", label)] for label in self.labels)
        answers = [int(template.tokens(conversation).ids[start]) for conversation in turns]
        if len({*answers}) < len(answers):
            raise WxbError(
                f"the classes {', '.join(self.labels)} do not all begin with different tokens;"
                " give them other names in `labels` of the corpus"
            )
        return answers
