"""Run scripts of benchmarks/, and format their results for reports/benchmarks and docs/.

A file in reports/benchmarks has `made` (when and where it was made), `rows` (dicts from headings to
cells) and `formats` (format specifications of headings). A cell is None (empty), text, a number, an
interval (value, low, high), as in `0.9 (0.8–1.0)`, or a pair of numbers, as in `1, 2`.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.project import provenance
from wxb.runtime.command import process_cost

_STARTED = time.monotonic()


def run(app: typer.Typer) -> None:
    """Run a script; for a WxbError or an absent file, print a line to stderr and exit with 2."""
    try:
        app()  # exits
    except WxbError as error:
        line = str(error)
    except FileNotFoundError as error:
        absent = error.filename or error
        line = f"{absent} does not exist; benchmarks/README.md says what writes it"
    print(f"{Path(sys.argv[0]).stem}: {line}", file=sys.stderr)
    sys.exit(2)  # as for wrong arguments


def report(
    rows: Sequence[Mapping[str, Any]],
    output: Path | None,
    formats: Mapping[str, str] | None = None,
    **settings: Any,
) -> None:
    """Print rows as a Markdown table; save rows, settings, machine and date as JSON in `output`."""
    content = {**settings, "rows": rows, "formats": formats or {}}
    sys.stdout.write("".join(f"{line}\n" for line in table(content)))
    if output:
        cost: dict[str, Any] = process_cost(time.monotonic() - _STARTED)
        machine = {key: cost[key] for key in provenance.MACHINE if key in cost}
        made = {"finished": cost["finished"], "machines": [machine]}
        write_json(output, {"made": made, **content})


def table(content: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a benchmark's Markdown table: columns of its first row, numbers to the right."""
    rows, formats = content["rows"], content["formats"]
    headings = [*rows[0]]
    are_text = {h: all(isinstance(row[h], str | None) for row in rows) for h in headings}
    yield f"| {' | '.join(headings)} |"
    yield f"| {' | '.join('---' if are_text[heading] else '---:' for heading in headings)} |"
    for row in rows:
        cells = (_cell_text(row[heading], formats.get(heading)) for heading in headings)
        yield f"| {' | '.join(cells)} |"


def _cell_text(cell: Any, specification: str | None) -> str:
    """Format a cell with "−" as minus sign; the default is `.3f`, or `,` for an integer."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int | float):
        default = "," if isinstance(cell, int) else ".3f"
        return format(cell, specification or default).replace("-", "−")
    value, *others = (_cell_text(number, specification) for number in cell)
    if len(others) == 1:
        return f"{value}, {others[0]}"
    dash = " to " if (specification or "").startswith("+") else "–"
    return f"{value} ({dash.join(others)})"
