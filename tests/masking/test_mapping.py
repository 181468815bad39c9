"""The mapping file: private, always complete, and never quoted in errors."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wxb.core.errors import WxbError
from wxb.masking.placeholders import Placeholders

ROOT = Path(__file__).parents[2]


def test_a_saved_mapping_can_be_read(tmp_path):
    path = tmp_path / "m.json"
    mapping = Placeholders(path)
    assert not path.exists()
    assert mapping.placeholder("NAME", "Zoë\n") == "<NAME_1>"
    mapping.fakes["Eva"] = "Ann"
    mapping.save()
    again = Placeholders(path)
    assert again.values == {"<NAME_1>": "Zoë\n"}
    assert again.fakes == {"Eva": "Ann"}
    before = path.stat().st_ino
    again.save()
    assert path.stat().st_ino == before, "it was written without a change"
    numbers = [again.placeholder("NAME", value) for value in ("Zoë\n", "Bob")]
    assert numbers == ["<NAME_1>", "<NAME_2>"]


def test_only_its_owner_may_read_it_and_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "m.json", tmp_path / "link"
    path.write_text('{"placeholders": {}}')
    path.chmod(0o666)
    link.symlink_to(path)
    mapping = Placeholders(link)
    mapping.placeholder("NAME", "Ann")
    mapping.save()
    assert path.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()
    assert "Ann" in path.read_text()


@pytest.mark.parametrize(
    "content",
    ["Ann", '{"Ann": 1}', "[]", '{"placeholders": {"Ann": "x"}}', ""],
)
def test_another_file_is_an_error_and_not_quoted(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(WxbError, match=r"m\.json: expected a mapping") as error:
        Placeholders(path)
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__


def test_the_file_is_complete_after_a_kill(tmp_path):
    path = tmp_path / "m.json"
    code = (
        "import sys; from pathlib import Path; from wxb.masking.placeholders import Placeholders\n"
        "mapping = Placeholders(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    mapping.placeholder('NAME', f'value {number}')\n"
        "    mapping.save(); print(number, flush=True)\n"
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        saved = process.communicate()[0].split()
        content = json.loads(path.read_text())["placeholders"]
        assert {f"value {number}" for number in saved} <= {*content.values()}
