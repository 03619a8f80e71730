"""Tells statements about rows from those about the catalog, by their first words."""

import re

from metasrv_base.sql.split import StatementText

ROW_WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE")
"""First words of the statements that frontends carry out."""
_NOT_HERE = ("WITH", "VALUES", "COPY", "MERGE", "REPLACE", "UPSERT")
"""First words of statements about rows that nobody carries out: frontends say so."""
_FIRST = re.compile(
    rf"(?:EXPLAIN\s+)?(?:{'|'.join((*ROW_WORDS, *_NOT_HERE))})\b", re.IGNORECASE | re.ASCII
)
_VIEW = re.compile(r"\bFROM\s+(?:\w+\s*\.\s*)?information_schema\b", re.IGNORECASE | re.ASCII)
_QUERY = re.compile(r"(?:EXPLAIN\s+)?SELECT\b", re.IGNORECASE | re.ASCII)
_LOOKED_AT_CHARS = 4_096
_APART = re.compile(
    r"""'(?:[^']|'')*+'? | "(?P<name>(?:[^"]|"")*+)"?
    | --[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)?
    """,
    re.VERBOSE,
)
"""Strings, names in quotes and comments: no words of the language, whatever they say."""


def is_of_rows(text: StatementText) -> bool:
    """Whether a statement is a frontend's. A query of the information schema is metasrv's."""
    head = text.source[text.start : min(text.end, text.start + _LOOKED_AT_CHARS)]
    head = _APART.sub(_blanked, head)
    if _FIRST.match(head) is None:
        return False
    return _QUERY.match(head) is None or _VIEW.search(head) is None


def _blanked(part: re.Match[str]) -> str:
    """A comment is a blank, a string and a name in quotes are words that mean nothing here."""
    if part["name"] is None:
        return " '' " if part[0][0] == "'" else " "
    return "information_schema" if part["name"].lower() == "information_schema" else "n"
