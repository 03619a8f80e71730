"""Shortcuts of the prompt, in the style of psql: lines that begin with a backslash. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metasrv_base.sql.quoting import quoted, quoted_name

ROWS_MAX = 1_000
"""The most objects that a shortcut lists."""
HELP: Mapping[str, str] = {
    r"\d": "tables of the schema",
    r"\d TABLE": "columns, indexes and constraints of a table",
    r"\dt [SCHEMA]": "tables of a schema",
    r"\dn": "schemas of the catalog",
    r"\di [TABLE]": "indexes of the schema, or of a table",
    r"\l": "catalogs",
    r"\c [CATALOG.]SCHEMA": "names without a schema are from now on of this one",
    r"\x": "switch between a line for each row and a line for each value",
    r"\timing": "switch the time of each input on and off",
    r"\watch [SECONDS]": "repeat the last query until Ctrl-C; by default every 2 s",
    r"\i FILE": "carry out the statements of a file",
    r"\?": "this list",
    r"\q": "leave, as Ctrl-D does",
}
_PART = re.compile(r'"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[^".\s]+)')


@dataclass(frozen=True, slots=True)
class Shortcut:
    name: str
    """The name with its backslash."""
    argument: str


@dataclass(frozen=True, slots=True)
class NameScope:
    """The holders of names that are given without one."""

    catalog: str
    schema: str


class BadShortcut(ValueError):
    """The message says what is wrong."""


def shortcut_of(text: str) -> Shortcut:
    r"""Reads `\d t;`: a semicolon is allowed. Raises BadShortcut for a name that there is not, and
    for an argument that is missing or too many."""
    words = text.strip().rstrip(";").split(None, 1)
    name, argument = words[0] if words else "", words[1].strip() if len(words) == 2 else ""
    forms = [form for form in HELP if form.split()[0] == name]
    if not forms:
        raise BadShortcut(rf"there is no shortcut {name}; \? lists them")
    most = any(" " in form for form in forms)
    needs_one = all(" " in form and "[" not in form.split(None, 1)[1][:1] for form in forms)
    if (argument and not most) or (not argument and (needs_one or name == r"\c")):
        raise BadShortcut(f"the form is {' or '.join(forms)}")
    return Shortcut(name, argument)


def sql_of(shortcut: Shortcut, session: NameScope) -> str | None:
    """The statements that a shortcut stands for; None: it is none of SQL. Raises BadShortcut for
    an argument that is no name."""
    make = _SQL.get(shortcut.name)
    return None if make is None else make(shortcut.argument, session)


def session_of(argument: str, session: NameScope) -> NameScope:
    r"""The session after `\c`. Raises BadShortcut."""
    *holders, schema = name_parts(argument, most=2)
    return NameScope(holders[0] if holders else session.catalog, schema)


def name_parts(text: str, most: int) -> tuple[str, ...]:
    """The parts of `catalog.schema.table`, without quotes. Raises BadShortcut."""
    parts: list[str] = []
    offset = 0
    while (part := _PART.match(text, offset)) is not None:
        inner = part["quoted"]
        parts.append(part["plain"] if inner is None else inner.replace('""', '"'))
        offset = part.end() + 1
        if text[part.end() : offset] != ".":
            break
    if not 1 <= len(parts) <= most or offset <= len(text):
        raise BadShortcut(f"{text} is not a name")
    return tuple(parts)


def help_lines() -> list[str]:
    width = max(map(len, HELP))
    return [f"{form:{width}}  {meaning}" for form, meaning in HELP.items()]


def _where(catalog: str, schema: str, table: str = "") -> str:
    text = f"table_catalog = {quoted(catalog)} AND table_schema = {quoted(schema)}"
    return f"{text} AND table_name = {quoted(table)}" if table else text


def _full(argument: str, session: NameScope) -> tuple[str, str, str]:
    *holders, table = name_parts(argument, most=3)
    catalog, schema = [session.catalog, session.schema][: 2 - len(holders)] + holders
    return catalog, schema, table


def _tables(argument: str, session: NameScope) -> str:
    within = session_of(argument, session) if argument else session
    where = _where(within.catalog, within.schema)
    return (
        "SELECT table_name, table_id, column_count, index_count, region_count, table_comment"
        f" FROM information_schema.tables WHERE {where} ORDER BY table_name LIMIT {ROWS_MAX}"
    )


def _table(argument: str, session: NameScope) -> str:
    if not argument:
        return _tables("", session)
    name = _full(argument, session)
    where = _where(*name)
    return (
        f"DESCRIBE {'.'.join(map(quoted_name, name))};\n{_indexes(argument, session)};\n"
        "SELECT constraint_name, constraint_type, column_names, check_clause, state"
        f" FROM information_schema.constraints WHERE {where} LIMIT {ROWS_MAX}"
    )


def _indexes(argument: str, session: NameScope) -> str:
    holders = _full(argument, session) if argument else (session.catalog, session.schema)
    return (
        "SELECT table_name, index_name, column_names, is_unique, state FROM"
        f" information_schema.indexes WHERE {_where(*holders)} ORDER BY table_name, index_name"
        f" LIMIT {ROWS_MAX}"
    )


def _schemas(_: str, session: NameScope) -> str:
    return (
        "SELECT schema_name, schema_id FROM information_schema.schemata WHERE catalog_name ="
        f" {quoted(session.catalog)} ORDER BY schema_name LIMIT {ROWS_MAX}"
    )


_SQL: Mapping[str, Callable[[str, NameScope], str]] = {
    r"\d": _table,
    r"\dt": _tables,
    r"\dn": _schemas,
    r"\di": _indexes,
    r"\l": lambda _, session: "SHOW CATALOGS",
}
