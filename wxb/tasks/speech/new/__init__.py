"""How a folder of a user's own is recognized as recordings with what was said in them."""

from __future__ import annotations

from pathlib import Path

from wxb.errors import WxbError
from wxb.tasks import guessing
from wxb.tasks.guessing import Files, Guess
from wxb.tasks.speech.record.audio.reading import SUFFIXES

FIELDS = {
    "input": (
        *("path", "file", "filename", "file_name", "audio", "wav", "audio_path", "audio_file"),
        *("wav_path", "clip", "recording"),
    ),
    "id": ("id", "utterance_id", "uttid", "segment_id", "uid"),
    "sentence": (
        *("sentence", "transcript", "transcription", "text", "normalized_text", "utterance"),
        *("raw_transcription", "label"),
    ),
    "speaker": ("speaker", "speaker_id", "client_id", "spk", "reader", "voice"),
}
EXPECTED = (
    "a folder of recordings (wav, flac, mp3, ...) with a table beside them, which has the path of"
    " each (or an `id` that is its name) and what was said, in fields such as `path` and `sentence`"
)


def guess(files: Files) -> Guess | None:
    """Recordings, and tables that say what was said in them."""
    found = guessing.by_names(files, FIELDS)
    if "sentence" not in found or not found.keys() & {"input", "id"}:
        return None
    if not _holds_audio(files):
        return None
    speakers = [found["speaker"]] if "speaker" in found else []
    # A further table may tell who speaks.
    guess = guessing.guessed(files, found, evidence=len(FIELDS) - 1, groups=speakers)
    manifest = _manifest(files, found["sentence"])
    if manifest:
        guess.content["manifest"] = manifest
        guess.why["manifest"] = "guessed: the first says what was said"
    absent = [key for key in ("speaker", "id") if key not in found]
    guess.content["fields"] |= dict.fromkeys(absent)
    return guess


def _holds_audio(files: Files) -> bool:
    """Whether recordings lie below the tables. Raises WxbError where tables alone were given."""
    if files.path.is_dir():
        return any(path.suffix.lower() in SUFFIXES for path in files.path.rglob("*"))
    cells = (value for row in files.rows[:1] for value in row.values() if isinstance(value, str))
    if any(Path(cell).suffix.lower() in SUFFIXES for cell in cells):
        raise WxbError(
            f"{files.path}: found a table that names recordings; expected the folder that both lie"
            f" in: wxb new corpus {files.path.parent}"
        )
    return False


def _manifest(files: Files, sentence: str) -> list[str]:
    """The tables by name, those with the sentence first, where others only add columns to it."""
    telling = [file.name for file in files.members if sentence in files.fields_of(file)]
    others = [file.name for file in files.members if file.name not in telling]
    return [*telling, *others] if len(telling) == 1 and others else []
