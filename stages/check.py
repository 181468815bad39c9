"""Check params.yaml before any other stage.

DVC removes the outputs of a stage before it runs the stage, so the stage itself checks too late.
The output of this stage never changes, so it makes no other stage stale.
"""

import sys
from pathlib import Path

from wxb.core import compatibility
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import load

CHECKED, BACKBONES = Path(".wxb/params-checked"), Path(".wxb/backbones")


def main() -> None:
    """Check params.yaml and local checkpoints, and write the file that other stages depend on.

    Exits with 1 for errors. A new folder contains a link for each backbone with a local checkpoint,
    and an empty file for others. DVC hashes files behind links: other weights make stages stale.
    """
    try:
        params = load()
        compatibility.require_checkpoints(params)
    except WxbError as error:
        sys.exit(f"{error}\nNo stage ran and no file was removed. `wxb params` checks it again.")
    with publish(CHECKED, BACKBONES) as (checked, backbones):
        checked.write_text("params.yaml is valid\n", encoding="utf-8")
        backbones.mkdir()
        for name, backbone in params.backbones.items():
            if backbone.is_local:
                (backbones / name).symlink_to(Path(backbone.checkpoint or "").absolute())
            else:
                (backbones / name).touch()


if __name__ == "__main__":
    main()
