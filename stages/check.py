"""Check params.yaml before any other stage.

DVC removes the outputs of a stage before it runs the stage, so the stage itself checks too late.
The output of this stage never changes, so it makes no other stage stale.
"""

import gc
import sys
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import load

CHECKED = Path(".wxb/params-checked")


def main() -> None:
    """Write the file that other stages depend on; exits with 1 if params.yaml is invalid."""
    gc.freeze()  # as in wxb/runtime/command.py
    try:
        load()
    except WxbError as error:
        sys.exit(f"{error}\nNo stage ran and no file was removed. `wxb params` checks it again.")
    with publish(CHECKED) as (draft,):
        draft.write_text("params.yaml is valid\n", encoding="utf-8")


if __name__ == "__main__":
    main()
