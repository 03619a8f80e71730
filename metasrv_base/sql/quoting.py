"""Texts and names in quotes. It imports nothing, so that clients can bind values."""


def quoted(text: str) -> str:
    """The constant of a text."""
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """A name in quotes, whether it needs them or not."""
    return '"' + name.replace('"', '""') + '"'
