"""Named entity recognition: typed spans of characters in a text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy holds the modules to what they must give
    from wxb.charts.parts import TaskPage
    from wxb.corpora.labelling import Labelling
    from wxb.corpora.reading import Reading
    from wxb.metrics.scorer import Scorer
    from wxb.project.sharing.card import TaskCard
    from wxb.tasks.exports import TaskExports
    from wxb.tasks.methods import Method
    from wxb.tasks.ner import card, exports, metrics, page, reading, record
    from wxb.tasks.ner.generation import method as generation
    from wxb.tasks.ner.tagging import method as tagging

    _record: Labelling = record
    _reading: Reading = reading
    _tagging: Method = tagging
    _generation: Method = generation
    _scorer: Scorer = metrics
    _page: TaskPage = page
    _card: TaskCard = card
    _exports: TaskExports = exports
