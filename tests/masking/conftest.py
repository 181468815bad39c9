import os
from pathlib import Path

import pytest


@pytest.fixture
def closed(monkeypatch):
    """Makes folders named "closed" unlistable, also for root, who ignores permissions."""
    scan = os.scandir

    def scandir(path):
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
