"""The class of trained chat models: conversations in, replies out, in batches or streamed."""

import math
import sys
from collections.abc import Generator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.compatibility import positions
from wxb.core.errors import WxbError
from wxb.core.progress import Progress, track
from wxb.corpora.records import Record, RecordError
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.templates import Message, Template, Truncation
from wxb.corpora.text.tokenizers import text_of
from wxb.tasks.chat.params import Prediction
from wxb.tasks.chat.record.conversation import deserialize, validate_question, with_answer
from wxb.tasks.methods import GeneratorPredictor, Predictor, batches_by_length


class Reply(NamedTuple):
    """A reply of a model; empty if the last message alone is too long.

    `ended`: by itself, not by the maximum length; true if the question is blank. `dropped`: the
    number of oldest messages that did not fit. `tokens`: the number of generated ones.
    """

    text: str
    ended: bool
    dropped: int = 0
    tokens: int = 0


class Responder(Predictor):
    """A trained model that predicts the reply to a conversation."""

    hub_task, example = "text-generation", '"Where is the library?"'

    def output_fields(self, input_: str, prediction: Reply) -> dict[str, Any]:
        """`reply`, whether it `ended` by itself, and the number of `dropped` messages if any."""
        dropped = {"dropped": prediction.dropped} if prediction.dropped else {}
        return {"reply": prediction.text, "ended": prediction.ended, **dropped}


class Replier(GeneratorPredictor, Responder):
    """A trained chat model with its tokenizer, template and few-shot examples."""

    prediction = Prediction()

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set `examples`, sorted by id: each kind's shortest single question, all without one."""
        single = [r for r in records if [m["role"] for m in deserialize(r.input)] == ["user"]]
        by_length = sorted(single, key=lambda r: (len(r.input) + len(r.gold["text"]), r.id))
        # Reversed, so that the shortest of a kind replaces the others.
        shortest = {r.gold["kind"] or r.id: r for r in reversed(by_length)}
        examples = sorted(shortest.values(), key=lambda r: r.id)
        self.settings["examples"] = [*map(with_answer, examples)]

    # Prompts

    @cached_property
    def template(self) -> Template:
        """The template of the settings."""
        return Template(self.tokenizer, self.settings["template"])

    def with_examples(self, conversation: Sequence[Message]) -> list[Message]:
        """A copy with up to `shots` examples after a system message; WxbError if there are none."""
        if self.prediction.shots and not self.settings.get("examples"):
            why = "it is shared or merged, or no validation conversation is a single question"
            raise WxbError(f"shots: the model holds no examples ({why}); leave it out")
        pairs = self.settings.get("examples", [])[: self.prediction.shots]
        start = int(conversation[0]["role"] == "system")
        examples = (message for pair in pairs for message in pair)
        return [*conversation[:start], *examples, *conversation[start:]]

    def truncate(self, conversation: Sequence[Message]) -> Truncation:
        """The newest turns of a conversation that leave room for a reply, with the prompt.

        The examples of the prompt are dropped first, and do not count as dropped. `tokens` is None
        if the last turn alone is too long. Raises WxbError if a reply leaves no room for a prompt.
        """
        messages, longest = self.with_examples(conversation), self.prediction.max_new_tokens
        room = self.context_length - longest
        if room < 1:
            raise WxbError(f"max_new_tokens: found {longest}, expected below {self.context_length}")
        kept = self.template.truncate(messages, room, answer_next=True)
        examples = len(messages) - len(conversation)
        return kept._replace(dropped=max(0, kept.dropped - examples))

    @property
    def context_length(self) -> int:
        """The maximum number of tokens of prompt and reply together; sys.maxsize without one."""
        return positions(self.model.backbone.config) or sys.maxsize

    def count_dropped(self, conversation: Sequence[Message]) -> int:
        """The number of oldest messages that will not be read; 0 if not even the last one fits."""
        kept = self.truncate(_conversation(conversation))
        return 0 if kept.tokens is None else kept.dropped

    # One reply

    def reply(self, conversation: Sequence[Message]) -> Generator[str, None, bool]:
        """Stream the most likely reply, up to its end or the template's next question.

        Close the generator to stop the model. Returns whether the reply ended by itself. Raises
        WxbError if messages are invalid, or the last one is too long; oldest ones are left out.
        """
        import torch
        from tokenizers.decoders import DecodeStream

        from wxb.models.decoding import DecoderState, decoder_step

        kept, longest = self.truncate(_conversation(conversation)), self.prediction.max_new_tokens
        if kept.tokens is None:
            raise WxbError(
                f"the last message is too long: {kept.length} tokens in all, at most"
                f" {self.context_length - longest} can be read"
            )
        backend, stream = self.tokenizer.backend_tokenizer, DecodeStream(skip_special_tokens=True)
        device, end_ids = next(self.model.parameters()).device, self.template.end_ids
        tokens = torch.from_numpy(kept.tokens.ids.astype(np.int64))[None].to(device)
        step = decoder_step(partial(self.model.backbone, use_cache=True, logits_to_keep=1))
        state = DecoderState(torch.ones_like(tokens), tokens[:, :0])
        has_begun, has_ended, held = False, False, ""
        question = self.template.next_question
        for _ in range(longest):
            with torch.inference_mode():
                logits, state = step(tokens, state)
            tokens = logits.argmax(dim=-1, keepdim=True)
            if has_ended := int(tokens) in end_ids:
                break
            text = held + (stream.step(backend, int(tokens)) or "")
            text, mark, _ = text.partition(question or "\0")
            # Hold back what may be the beginning of a question.
            starts = (i for i in range(len(text)) if question.startswith(text[i:]))
            cut = len(text) if mark else next(starts, len(text))
            text, held = text[:cut], text[cut:]
            if text := text if has_begun else text.lstrip():
                has_begun = True
                yield text
            if has_ended := bool(mark):
                break
        if held:
            yield held
        return has_ended

    # Many replies

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Reply]:
        """The greedy reply to each conversation; empty for blank or too long ones.

        Prints how many are too long. Raises WxbError for an invalid one.
        """
        nonblank = [index for index, text in enumerate(texts) if text.strip()]
        kept = {index: self.truncate(_conversation(texts[index])) for index in nonblank}
        prompts = {index: each.tokens.ids for index, each in kept.items() if each.tokens}
        replies = [Reply("", ended=index not in kept) for index in range(len(texts))]
        if lost := len(kept) - len(prompts):
            print(f"{caption}: {lost} of {len(texts)} are too long", file=Progress.console)
        indices, lengths = [*prompts], [len(ids) for ids in prompts.values()]
        batches = batches_by_length(lengths, self.prediction.batch_size)
        for batch in track(batches, caption, len(batches), unit="batch"):
            chosen = [indices[position] for position in batch]
            batch_replies = self._batch_replies([prompts[index] for index in chosen])
            for index, reply in zip(chosen, batch_replies, strict=True):
                replies[index] = reply._replace(dropped=kept[index].dropped)
        return replies

    def _batch_replies(self, prompts: Sequence[NDArray[np.int32]]) -> list[Reply]:
        """The greedy reply to each prompt, up to its end or the next question, in one batch."""
        end_ids = self.template.end_ids
        tokens = self.model.generate(
            **self.batch([{"input_ids": ids} for ids in prompts], side="left"),
            max_new_tokens=self.prediction.max_new_tokens,
            eos=end_ids,
            pad=end_ids[0],
        ).tokens.cpu()
        replies = []
        for ids in tokens.tolist():
            end = next((index for index, id_ in enumerate(ids) if id_ in end_ids), None)
            text = text_of(self.tokenizer, ids[:end])
            text, mark, _ = text.partition(self.template.next_question or "\0")
            count = len(ids) if end is None else end + 1
            has_ended = bool(mark) or end is not None
            replies.append(Reply(text.strip(), ended=has_ended, tokens=count))
        return replies

    def model_metrics(self, records: Sequence[Record], predictions: Any) -> dict[str, float]:
        """Loss (nats per token) and perplexity of the gold answers; `scored`: number that fit.

        Skips answers that do not fit into the context. If none fits, the loss is 0.
        """
        import torch

        items = []
        for record in records:
            messages = self.with_examples(with_answer(record))
            kept = self.template.truncate(messages, self.context_length)
            if kept.tokens is not None:
                ids, generated = kept.tokens
                stop = np.flatnonzero(generated)[-1] + 1  # of the last answer
                start = stop - int(np.argmin(generated[:stop][::-1]))
                labels = np.full_like(ids, IGNORED)
                labels[start:stop] = ids[start:stop]
                items.append({"input_ids": ids, "labels": labels})
        loss, count = 0.0, 0
        lengths = [len(item["input_ids"]) for item in items]
        for indices in batches_by_length(lengths, self.prediction.batch_size):
            with torch.inference_mode():
                output = self.model(**self.batch([items[index] for index in indices]))
            loss += float(output["loss"]) * len(output["logits"])
            count += len(output["logits"])
        mean = loss / max(count, 1)
        return {"loss": mean, "perplexity": math.exp(min(mean, 700)), "scored": len(items)}


def _conversation(source: str | Sequence[Message]) -> list[Message]:
    """Validate a list, its JSON, or a question. WxbError unless the last message is by `user`."""
    try:
        return deserialize(source) if isinstance(source, str) else validate_question([*source])
    except RecordError as error:
        fault = f"{error.reason}: {error.detail}"
        raise WxbError(f"{fault}; expected a question or messages") from error
