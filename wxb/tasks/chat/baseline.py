"""The answer to the nearest training question."""

from collections.abc import Sequence

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.chat.models.predictor import Reply, Responder


class NearestResponder(baselines.Baseline, Responder):
    """Copies a training answer; empty if the conversation shares no word with training."""

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Reply]:
        """The answer to the nearest training conversation of each text; `ended` is always true."""
        nearest = self.nearest(texts, caption)
        return [Reply(match[0] if match else "", ended=True) for match in nearest]


class NearestMethod(baselines.BaselineMethod):
    """A list of answers."""

    experiment: experiments.Nearest
    PREDICTOR = NearestResponder

    def gold(self, record: Record) -> str:
        """The answer."""
        return str(record.gold["text"])
