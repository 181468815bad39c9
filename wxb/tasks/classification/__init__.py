"""Text classification: one class of several for each text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy holds the modules to what they must give
    from wxb.charts.parts import TaskPage
    from wxb.corpora.labelling import Labelling
    from wxb.corpora.reading import Reading
    from wxb.metrics.scorer import Scorer
    from wxb.project.sharing.card import TaskCard
    from wxb.tasks.classification import card, metrics, page, reading, record
    from wxb.tasks.classification.encoder import method as encoder
    from wxb.tasks.classification.recurrent import method as recurrent
    from wxb.tasks.classification.tfidf import method as tfidf
    from wxb.tasks.methods import Method

    _record: Labelling = record
    _reading: Reading = reading
    _encoder: Method = encoder
    _recurrent: Method = recurrent
    _tfidf: Method = tfidf
    _scorer: Scorer = metrics
    _page: TaskPage = page
    _card: TaskCard = card
