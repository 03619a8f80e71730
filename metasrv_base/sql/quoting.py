"""Texts in single quotes. It imports nothing, so that clients can bind values."""


def quoted(text: str) -> str:
    """The constant of a text."""
    return "'" + text.replace("'", "''") + "'"
