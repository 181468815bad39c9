"""Check params.yaml before any other stage begins.

DVC removes a stage's outputs before it runs the stage, which is too late to refuse parameters. What
is written here never changes, so that nothing after it becomes stale.
"""

import sys
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import load

CHECKED = Path(".wxb/params-checked")


def main() -> None:
    """Leave the mark that other stages wait for; exits with 1 where the schema refuses."""
    try:
        load()
    except WxbError as error:
        sys.exit(f"{error}\nNothing was run, and nothing removed. `wxb params` checks it again.")
    with publish(CHECKED) as (draft,):
        draft.write_text("params.yaml is valid\n", encoding="utf-8")


if __name__ == "__main__":
    main()
