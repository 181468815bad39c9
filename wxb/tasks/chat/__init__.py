"""Chat: answers to what people ask, in one turn or several."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy holds the modules to what they must give
    from wxb.charts.parts import TaskPage
    from wxb.corpora.labelling import Labelling
    from wxb.corpora.reading import Reading
    from wxb.metrics.scorer import Scorer
    from wxb.tasks.chat import metrics, page, reading, record
    from wxb.tasks.chat.sft import method as sft
    from wxb.tasks.methods import Method

    _record: Labelling = record
    _reading: Reading = reading
    _sft: Method = sft
    _scorer: Scorer = metrics
    _page: TaskPage = page
