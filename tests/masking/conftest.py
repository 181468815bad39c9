import os
from pathlib import Path

import pytest


@pytest.fixture
def closed(monkeypatch):
    """Folders of this name cannot be listed: tests may run as root, whom no permission stops."""
    scan = os.scandir

    def scandir(path):
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
