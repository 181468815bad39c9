"""The mapping file: private, always complete, and never quoted in errors."""

import pytest

from wxb.core.errors import WxbError
from wxb.masking.placeholders import Placeholders


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


@pytest.mark.parametrize("content", ["Ann", '{"Ann": 1}', '{"placeholders": {"Ann": "x"}}', ""])
def test_another_file_is_an_error_and_not_quoted(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(WxbError, match=r"m\.json: expected a mapping") as error:
        Placeholders(path)
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__
