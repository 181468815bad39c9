"""The error that is meant for the user."""


class WxbError(Exception):
    """Something the user can mend.

    The message says what was found, what was expected and what to do; no traceback is needed.
    """
