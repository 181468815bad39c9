"""What trained models of chat do: replies to conversations, one at a time or many."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.chat.params import Prediction, Prompt
from wxb.tasks.chat.record.conversation import (
    ConversationError,
    Message,
    checked,
    message,
    of_text,
)
from wxb.tasks.chat.sft import template
from wxb.tasks.chat.sft.window import Fitting, fitting
from wxb.tasks.methods import Trained, collator, in_batches


class Reply(NamedTuple):
    """What a model writes, and whether it came to an end before its length was used up.

    `dropped` messages of the conversation were left out; of one whose last turn alone is too long
    nothing is read, and the reply is empty. `others` are replies to the same in other prompts, and
    `tokens` how many were written in all of them, the ends included.
    """

    text: str
    ended: bool
    dropped: int = 0
    tokens: int = 0
    others: tuple[tuple[str, str], ...] = ()


class Replier(Trained):
    """A trained model with its tokenizer, template and examples, and how it is to be asked."""

    prediction = Prediction()

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The model that was saved in a folder."""
        from wxb.training.backbones.generator import Generator

        return Generator.from_pretrained(
            folder, tokens=len(tokenizer), four_bit=settings["four_bit"]
        )

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose the questions that few-shot prompts show: the shortest of each kind in turn."""
        single = [r for r in records if [m["role"] for m in of_text(r.input)] == ["user"]]
        by_length = sorted(single, key=lambda r: (len(r.input) + len(r.gold["text"]), r.id))
        first: dict[Any, Record] = {}
        for record in by_length:
            first.setdefault(record.gold["kind"] or record.id, record)
        self.settings["examples"] = [
            [*of_text(record.input), message("assistant", record.gold["text"])]
            for record in sorted(first.values(), key=lambda r: r.id)
        ]

    # How it is asked

    def prompted(self, conversation: Sequence[Message], prompt: Prompt) -> list[Message]:
        """A conversation with what a way of asking puts before it, or before its last question."""
        before, rest = conversation[: conversation[0]["role"] == "system"], list(conversation)
        match prompt:
            case "few-shot":
                shown = self.settings["examples"][: self.prediction.shots]
                return [*before, *(each for pair in shown for each in pair), *rest[len(before) :]]
            case "instruction":
                asked = f"{self.prediction.instruction}\n{rest[-1]['content']}"
                return [*rest[:-1], message("user", asked)]
            case "system":
                return [message("system", self.prediction.system), *rest[len(before) :]]
        return rest

    @property
    def window(self) -> int:
        """How many tokens the model reads and writes at once."""
        return int(self.model.backbone.config.max_position_embeddings)

    def fitting(self, conversation: Sequence[Message], prompt: Prompt | None = None) -> Fitting:
        """What of a conversation leaves room for a reply, asked in a way: that of the settings.

        Examples are not counted among the messages that are left out.
        """
        asked = self.prompted(conversation, prompt or self.prediction.prompt)
        room = self.window - self.prediction.max_new_tokens
        fits = fitting(self.tokenizer, asked, self.settings["template"], room, answer_next=True)
        shown = sum(m["role"] != "system" for m in asked) - sum(
            m["role"] != "system" for m in conversation
        )
        return fits._replace(dropped=max(0, fits.dropped - shown))

    def dropped(self, conversation: Sequence[Message]) -> int:
        """How many of the oldest messages leave no room for a reply, and are not read."""
        return self.fitting(_asking(conversation)).dropped

    # One reply

    def reply(self, conversation: Sequence[Message]) -> Generator[str, None, bool]:
        """The reply to a conversation as it is written, piece by piece; closing it stops the model.

        Returns whether the reply came to an end. Raises WxbError where messages are none, or the
        last one is too long.
        """
        from tokenizers.decoders import DecodeStream

        fits = self.fitting(_asking(conversation))
        if fits.tokens is None:
            raise WxbError(self._too_long(fits.length))
        backend, written = self.tokenizer.backend_tokenizer, DecodeStream(skip_special_tokens=True)
        begun, ends = False, {*self.ends}
        for token in self._written(fits.tokens.ids):
            if token in ends:
                return True
            piece = written.step(backend, token) or ""
            piece = piece if begun else piece.lstrip()
            begun = begun or bool(piece)
            if piece:
                yield piece
        return False

    def _written(self, prompt: NDArray[np.int32]) -> Iterator[int]:
        """The tokens that follow a prompt, the likeliest each: as many as a reply may have."""
        import torch

        from wxb.models.decoding import Read, decoder

        device = next(self.model.parameters()).device
        tokens = torch.from_numpy(prompt.astype(np.int64))[None].to(device)
        step = decoder(partial(self.model.backbone, use_cache=True, logits_to_keep=1))
        read = Read(torch.ones_like(tokens), tokens[:, :0])
        for _ in range(self.prediction.max_new_tokens):
            with torch.inference_mode():
                logits, read = step(tokens, read)
            tokens = logits.argmax(dim=-1, keepdim=True)
            yield int(tokens)

    @property
    def ends(self) -> list[int]:
        """The tokens that end a reply."""
        return template.ends(self.tokenizer, self.settings["template"])

    # Many replies

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Reply]:
        """The reply to each conversation, and those to the prompts of the grid.

        A blank text has a blank reply. Raises WxbError for what is no conversation.
        """
        there = [at for at, text in enumerate(texts) if text.strip()]
        found = [Reply("", ended=True) for _ in texts]
        asked = [_asking(_read(texts[at])) for at in there]
        for at, reply in zip(there, self._asked(asked, label), strict=True):
            found[at] = reply
        return found

    def _asked(self, asked: Sequence[Sequence[Message]], label: str) -> list[Reply]:
        first = self._replies(asked, self.prediction.prompt, label)
        others: dict[str, list[Reply]] = {
            name: self._replies(asked, name, f"{label} ({name})")
            for name in self.prediction.grid
            if name != self.prediction.prompt
        }
        if self.prediction.grid:
            others = {self.prediction.prompt: first, **others}
        ways = others.values() or [first]
        return [
            reply._replace(
                tokens=sum(row[at].tokens for row in ways),
                others=tuple((name, row[at].text) for name, row in others.items()),
            )
            for at, reply in enumerate(first)
        ]

    def _replies(
        self, conversations: Sequence[Sequence[Message]], prompt: Prompt, label: str
    ) -> list[Reply]:
        fits = [self.fitting(each, prompt) for each in conversations]
        found = [Reply("", ended=False, dropped=each.dropped) for each in fits]
        short = [(at, each.tokens.ids) for at, each in enumerate(fits) if each.tokens is not None]
        batches = in_batches([len(ids) for _, ids in short], self.prediction.batch_size)
        for chosen in tracked(batches, label, len(batches), unit="batch"):
            replies = self._batch([short[number][1] for number in chosen])
            for number, reply in zip(chosen, replies, strict=True):
                at = short[number][0]
                found[at] = reply._replace(dropped=found[at].dropped)
        return found

    def _batch(self, prompts: Sequence[NDArray[np.int32]]) -> list[Reply]:
        """What the model writes after each prompt."""
        import torch

        from wxb.models.decoding import complete
        from wxb.training.batches import collate

        device, ends = next(self.model.parameters()).device, self.ends
        items = [{"input_ids": ids} for ids in prompts]
        batch = collate(items, self.tokenizer.pad_token_id, side="left")
        with torch.inference_mode():
            written = complete(
                partial(self.model.backbone, use_cache=True, logits_to_keep=1),
                **{name: values.to(device) for name, values in batch.items()},
                max_new_tokens=self.prediction.max_new_tokens,
                eos_token_id=ends,
                pad_token_id=ends[0],
            ).tokens.cpu()
        found = []
        for ids in written.tolist():
            last = next((at for at, token in enumerate(ids) if token in ends), None)
            text = self.tokenizer.backend_tokenizer.decode(ids[:last], skip_special_tokens=True)
            count = len(ids) if last is None else last + 1
            found.append(Reply(text.strip(), ended=last is not None, tokens=count))
        return found

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """Loss (nats a token) and perplexity of the answers, each token after the right ones.

        Of answers that fit into the window: `scored` tells how many.
        """
        import torch

        style, items = self.settings["template"], []
        for record in records:
            asked = self.prompted(of_text(record.input), self.prediction.prompt)
            whole = [*asked, message("assistant", record.gold["text"])]
            tokens = fitting(self.tokenizer, whole, style, self.window).tokens
            if tokens is not None:
                last = len(tokens.ids) - int(np.argmin(tokens.generated[::-1]))
                labels = np.full(len(tokens.ids), IGNORED)
                labels[last:] = tokens.ids[last:]
                items.append({"input_ids": tokens.ids, "labels": labels})
        loss, count = 0.0, 0
        collate, device = collator(self.tokenizer), next(self.model.parameters()).device
        for chosen in in_batches(
            [len(item["input_ids"]) for item in items], self.prediction.batch_size
        ):
            batch = {k: v.to(device) for k, v in collate([items[at] for at in chosen]).items()}
            with torch.inference_mode():
                output = self.model(**batch)
            loss += float(output["loss"]) * len(output["logits"])
            count += len(output["logits"])
        mean = loss / max(count, 1)
        return {"loss": mean, "perplexity": math.exp(min(mean, 700)), "scored": len(items)}

    # What is told

    def describe(self, given: str, prediction: Reply) -> dict[str, Any]:
        """The reply, and how many messages were left out, if any."""
        left_out = {"dropped": prediction.dropped} if prediction.dropped else {}
        return {"reply": prediction.text, "ended": prediction.ended, **left_out}

    def show(self, given: str, prediction: Reply) -> str:
        """The reply."""
        return prediction.text

    def _too_long(self, length: int) -> str:
        room = self.window - self.prediction.max_new_tokens
        return f"the last message is too long: {length} tokens in all, at most {room} can be read"


def _read(text: str) -> list[Message]:
    try:
        return of_text(text)
    except ConversationError as why:
        raise WxbError(f"{why.reason}: {why.detail}; expected a question or messages") from None


def _asking(conversation: Sequence[Message]) -> list[Message]:
    """A conversation that ends with a question; WxbError for another."""
    try:
        messages = checked(list(conversation))
    except ConversationError as why:
        raise WxbError(f"{why.reason}: {why.detail}") from None
    if messages[-1]["role"] != "user":
        raise WxbError("nothing asked: the last message is not the user's")
    return messages
