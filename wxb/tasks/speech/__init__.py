"""Speech recognition: what was said in a recording."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy holds the modules to what they must give
    from wxb.charts.parts import TaskPage
    from wxb.corpora.labelling import Labelling
    from wxb.corpora.reading import Reading
    from wxb.metrics.scorer import Scorer
    from wxb.tasks.methods import Method
    from wxb.tasks.speech import metrics, page, reading, record
    from wxb.tasks.speech.seq2seq import method as seq2seq

    _record: Labelling = record
    _reading: Reading = reading
    _seq2seq: Method = seq2seq
    _scorer: Scorer = metrics
    _page: TaskPage = page
