"""The mapping file: private, always complete, and never quoted in errors."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from wxb.core.errors import WxbError
from wxb.masking.mapping import Mapping, lock_mapping, read_key

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["plain", "encrypted"])
def key(request, tmp_path):
    return read_key(tmp_path / "key", create=True) if request.param == "encrypted" else None


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_saved_mapping_can_be_read(tmp_path, key):
    path = tmp_path / "new/m.json"
    mapping = Mapping(path, key)
    assert not path.exists()
    assert mapping.placeholder("NAME", "Zoë\n") == "<NAME_1>"
    mapping.escape("<NAME_2>", [])
    assert mapping.unsaved == 2
    mapping.save()
    assert mapping.unsaved == 0
    again = Mapping(path, key)
    assert (again.values, again.reserved) == ({"<NAME_1>": "Zoë\n"}, {"<NAME_2>"})
    assert [again.placeholder("NAME", value) for value in ("Zoë\n", "Bob")] == [
        "<NAME_1>",
        "<NAME_3>",
    ]
    assert ("Zoë" in path.read_text()) == (key is None)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_only_its_owner_may_read_it(tmp_path, mask):
    before = os.umask(mask)
    try:
        path = tmp_path / "m.json"
        path.write_text('{"placeholders": {}, "reserved": []}')
        path.chmod(0o666)
        mapping = Mapping(path)
        mapping.placeholder("NAME", "Ann")
        mapping.save()
        read_key(tmp_path / "key", create=True)
    finally:
        os.umask(before)
    assert mode(path) == mode(tmp_path / "key") == 0o600


def test_an_empty_mapping_is_saved_once(tmp_path):
    Mapping(tmp_path / "m.json").save()
    before = (tmp_path / "m.json").stat()
    again = Mapping(tmp_path / "m.json")
    assert again.values == {}
    again.save()
    assert (tmp_path / "m.json").stat().st_ino == before.st_ino


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m.json")
    mapping = Mapping(tmp_path / "link")
    mapping.placeholder("NAME", "Ann")
    mapping.save()
    assert (tmp_path / "link").is_symlink()
    assert "Ann" in (tmp_path / "m.json").read_text()


def test_saving_can_wait_while_few_placeholders_are_new(tmp_path):
    mapping = Mapping(tmp_path / "m.json")
    assert not mapping.can_wait  # nothing to save
    mapping.placeholder("NAME", "0")
    assert not mapping.can_wait
    for number in range(100):
        mapping.placeholder("NAME", str(number))
    mapping.save()
    mapping.placeholder("NAME", "100")
    assert mapping.can_wait
    for number in range(200):
        mapping.placeholder("NAME", str(number))
    assert not mapping.can_wait


@pytest.mark.parametrize(
    "content",
    ["Ann", '{"Ann": 1}', "[]", '{"placeholders": {"Ann": "x"}, "reserved": []}', ""],
)
def test_another_file_is_an_error_and_not_quoted(tmp_path, content, key):
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(
        WxbError, match=r"m\.json: (expected a mapping|cannot be decrypted)"
    ) as error:
        Mapping(path, key)
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_another_key_cannot_decrypt_it(tmp_path):
    mapping = Mapping(tmp_path / "m.json", read_key(tmp_path / "key", create=True))
    mapping.placeholder("NAME", "Ann")
    mapping.save()
    with pytest.raises(WxbError, match="cannot be decrypted with this key"):
        Mapping(tmp_path / "m.json", read_key(tmp_path / "other", create=True))
    with pytest.raises(WxbError, match="expected a mapping"):
        Mapping(tmp_path / "m.json")


def test_a_key_is_created_only_if_allowed(tmp_path):
    with pytest.raises(WxbError, match="expected the file of a key"):
        read_key(tmp_path / "key", create=False)
    (tmp_path / "key").write_text("12345")
    with pytest.raises(WxbError, match="expected a key") as error:
        read_key(tmp_path / "key", create=True)
    assert "12345" not in str(error.value)


def test_a_new_key_is_on_disk_before_it_is_used(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file))
    )
    read_key(tmp_path / "key", create=True)
    assert {(tmp_path / "key").stat().st_ino, tmp_path.stat().st_ino} <= {*synced}


def test_a_new_key_is_written_completely_or_not_at_all(tmp_path, monkeypatch):
    def fail(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WxbError, match=r"key: cannot be written \(No space left"):
        read_key(tmp_path / "key", create=True)
    assert [*tmp_path.iterdir()] == []


def test_a_key_that_another_process_creates_meanwhile_is_kept(tmp_path, monkeypatch):
    theirs = Fernet.generate_key()
    exists = iter([False])  # on the first call

    def path_exists(path):
        if next(exists, True):
            return True
        path.write_bytes(theirs)
        return False

    monkeypatch.setattr(Path, "exists", path_exists)
    assert read_key(tmp_path / "key", create=True) == theirs


def test_a_locked_mapping_cannot_be_locked_by_another_process(tmp_path):
    code = (
        "from wxb.masking.mapping import *\n"
        f"with lock_mapping(Path({str(tmp_path / 'm.json')!r})): pass"
    )
    with lock_mapping(tmp_path / "m.json"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "another process is masking with this mapping" in result.stderr
    assert not [*tmp_path.iterdir()]


def test_the_file_is_complete_after_a_kill(tmp_path):
    path = tmp_path / "m.json"
    code = (
        "import sys; from pathlib import Path; from wxb.masking.mapping import Mapping\n"
        "mapping = Mapping(Path(sys.argv[1]))\n"
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
