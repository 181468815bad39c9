import io

import pytest

from tests.masking.rules import Rules


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in this process, in the folder of the test; returns code, output, errors."""
    from wxb.cli import app
    from wxb.project import trained

    def run(*arguments, given=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        monkeypatch.setattr("sys.argv", ["wxb", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            app.main()
        return exit_info.value.code, *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(trained, "load", lambda name: Rules())
    return run
