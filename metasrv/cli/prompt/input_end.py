"""Whether the input of the prompt is whole, or goes on in another line. Pure."""

from metasrv_base.errors import Refused
from metasrv_base.sql.split import split

MARK = "\\"
"""The first character of a shortcut."""
_NEXT = "\nx"
"""Stands for the line that would follow: a statement of its own behind a semicolon."""


def is_shortcut(text: str) -> bool:
    return text.lstrip().startswith(MARK)


def is_whole(text: str) -> bool:
    """A shortcut ends with its line; statements end with a semicolon, and a batch behind its
    COMMIT, since it is one request. A blank input is whole."""
    if not text.strip() or is_shortcut(text):
        return True
    try:
        *statements, last = split(text + _NEXT)
    except Refused:  # within a string, a name or a comment
        return False
    if last.start != len(text) + 1:
        return False
    is_in_batch = False
    for statement in statements:
        word = statement.text[:6].upper()
        is_in_batch = (is_in_batch or word.startswith("BEGIN")) and word != "COMMIT"
    return not is_in_batch


def has_statement(text: str) -> bool:
    """Whether *text*, which is whole, has more than blanks and comments."""
    return next(split(text), None) is not None
