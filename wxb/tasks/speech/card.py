"""Model cards of speech recognition."""

from __future__ import annotations

from wxb.tasks import cards


class Card(cards.Card):
    """Cards of models that recognize speech."""

    TASK = "automatic-speech-recognition"
    TAGS = ("speech",)
    SCORES = ("cer", "wer")
    PURPOSE = "Transcribes recordings."
    EXAMPLE = '"recording.wav"'
