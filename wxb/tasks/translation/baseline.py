"""The translation of the nearest training source."""

from collections.abc import Sequence

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.translation.models.predictor import Translation, TranslationPredictor


class NearestTranslator(baselines.Baseline, TranslationPredictor):
    """Copies a training translation; blank if the text shares no word with training."""

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Translation]:
        """The translation of the nearest source of each text; its score is the cosine of both."""
        nearest = [match or ("", 0.0) for match in self.nearest(texts, caption)]
        return [Translation(gold, round(cosine, 4)) for gold, cosine in nearest]


class NearestMethod(baselines.BaselineMethod):
    """A list of translations."""

    experiment: experiments.Nearest
    PREDICTOR = NearestTranslator

    def gold(self, record: Record) -> str:
        """The first reference."""
        return str(record.gold[0])
