"""Completion at the prompt: shortcuts, words of the language, names of the catalog. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from metasrv.cli.prompt.input_end import is_shortcut
from metasrv.cli.prompt.names import CatalogNames, TableNames
from metasrv.cli.prompt.shortcuts import HELP, NameScope
from metasrv_base.sql.identifiers import dotted, identifier
from metasrv_base.sql.rows.reserved import column_text

CANDIDATES_MAX = 100
FIRST_WORDS = (
    *("ALTER", "BEGIN", "COMMENT ON", "COMMIT", "CREATE", "DELETE FROM", "DESCRIBE", "DROP"),
    *("EXCHANGE TABLES", "EXPLAIN", "INSERT INTO", "RENAME TABLE", "SELECT", "SHOW"),
    *("TRUNCATE TABLE", "UNDROP TABLE", "UPDATE"),
)
"""Words that a statement begins with."""
WORDS = (
    *("ADD", "AFTER", "AND", "AS", "ASC", "BETWEEN", "BIGINT", "BOOLEAN", "BY", "BYTEA", "CASCADE"),
    *("CATALOG", "CATALOGS", "CHECK", "COLOCATE", "COLUMN", "COMMENT", "CONSTRAINT", "DATABASE"),
    *("DATE", "DECIMAL", "DEFAULT", "DESC", "DOUBLE PRECISION", "DROP", "ENGINE", "EXISTS"),
    *("FALSE", "FROM", "HASH", "ID", "IF", "INDEX", "INDEXES", "INTEGER", "INTO", "IS", "KEY"),
    *("LABEL", "LIMIT", "NODES", "NOT", "NULL", "ON", "ORDER", "PARTITION", "PARTITIONS"),
    *("PLACEMENT", "PLACEMENTS", "PRIMARY", "PROFILE", "PROFILES", "RANGE", "REAL", "RENAME"),
    *("REPLICAS", "RESET", "SCHEMA", "SCHEMAS", "SET", "SMALLINT", "SPLIT AT", "STORAGE", "TABLE"),
    *("TABLES", "TABLESPACE", "TABLESPACES", "TEXT", "TIMESTAMPTZ", "TINYINT", "TO", "TRUE"),
    *("TYPE", "UNIQUE", "VALID", "VALIDATE", "VALUES", "WHERE", "WITH", "ZONES"),
)
"""Words that stand further behind."""
OF_TABLES = {"FROM", "INTO", "TABLE", "TABLES", "UPDATE", "ON", "DESCRIBE", "DESC", "EXISTS", "AND"}
"""Words before the name of a table."""
OF_SCHEMAS = {"SCHEMA", "DATABASE"}
OF_INDEXES = {"INDEX"}
_PART = re.compile(
    r"""(?P<name>(?:"(?:[^"]|"")*+"? | [A-Za-z0-9_.]+)+)
    | '(?:[^']|'')*+(?P<end>')? | .
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE = re.compile(r"([A-Za-z_]+|[^\sA-Za-z_])\s*\Z")
_WORD = re.compile(r'"(?:[^"]|"")*"|[A-Za-z_][A-Za-z0-9_]*')


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    text: str
    length: int
    """Characters before the cursor that it takes the place of."""
    kind: str


def candidates(before: str, names: CatalogNames, session: NameScope) -> list[CompletionCandidate]:
    """Completions of the word before the cursor; *before*: the input up to there."""
    offered: Iterable[CompletionCandidate]
    if is_shortcut(before) and _is_first(before):
        offered = _of_shortcut(before)
    else:
        statement = before[before.rfind(";") + 1 :]
        offered = _of_word(statement, names, session)
    unique: dict[str, CompletionCandidate] = {}
    for candidate in offered:  # as a stream: the names of a large catalog are not all looked at
        unique.setdefault(candidate.text, candidate)
        if len(unique) == CANDIDATES_MAX:
            break
    return list(unique.values())


def _is_first(before: str) -> bool:
    return " " not in before.strip() and not before[-1:].isspace()


def _of_shortcut(before: str) -> tuple[CompletionCandidate, ...]:
    typed = before.lstrip()
    forms = dict.fromkeys(form.split()[0] for form in HELP)
    return tuple(
        CompletionCandidate(form, len(typed), "shortcut")
        for form in forms
        if form.startswith(typed)
    )


def _of_word(
    statement: str, names: CatalogNames, session: NameScope
) -> Iterator[CompletionCandidate]:
    typed = ""
    for part in _PART.finditer(statement):  # from its beginning: quotes are open or closed
        typed = part["name"] or ""
        if part[0][0] == "'" and part["end"] is None:
            return  # within a string
    head = statement[: len(statement) - len(typed)]
    before = _BEFORE.search(head)
    word = before[1].upper() if before else ""
    if is_shortcut(statement):
        holder = {r"\dt": _schemas, r"\c": _schemas}.get(statement.split()[0], _tables)
        yield from _named(typed, holder(names, session), "name")
        return
    if not word:
        yield from _words(typed, FIRST_WORDS)
        return
    if word in OF_INDEXES:
        yield from _named(
            typed, (identifier(each) for table in names.tables for each in table.indexes), "index"
        )
    if word in OF_SCHEMAS:
        yield from _named(typed, _schemas(names, session), "schema")
    elif word in OF_TABLES:
        yield from _named(typed, _tables(names, session), "table")
    if word not in OF_TABLES - {"AND"}:
        yield from _named(typed, _columns(statement, names, session), "column")
    if typed:
        yield from _words(typed, (*WORDS, *FIRST_WORDS))
        yield from _named(typed, _tables(names, session), "table")


def _words(typed: str, words: Iterable[str]) -> Iterator[CompletionCandidate]:
    """Yields the keywords that *typed* begins, in lower case if it ends so."""
    for word in words:
        if word.startswith(typed.upper()):
            shown = word.lower() if typed[-1:].islower() else word
            yield CompletionCandidate(shown, len(typed), "keyword")


def _named(typed: str, names: Iterable[str], kind: str) -> Iterator[CompletionCandidate]:
    """Case counts in names; quotes need not be typed."""
    plain = typed.replace('"', "")
    for name in names:
        if name.replace('"', "").startswith(plain) and name != typed:
            yield CompletionCandidate(name, len(typed), kind)


def _tables(names: CatalogNames, session: NameScope) -> Iterator[str]:
    """Tables of the session by their names alone, then schemas, then the others with theirs."""
    for table in names.tables:
        if _is_of(table, session):
            yield identifier(table.table)
    yield from (f"{name}." for name in _schemas(names, session))
    for table in names.tables:
        catalog = table.catalog if table.catalog != session.catalog else None
        yield dotted(catalog, table.schema, table.table)


def _is_of(table: TableNames, session: NameScope) -> bool:
    return (table.catalog, table.schema) == (session.catalog, session.schema)


def _schemas(names: CatalogNames, session: NameScope) -> Iterator[str]:
    yield from (identifier(name) for catalog, name in names.schemas if catalog == session.catalog)


def _columns(statement: str, names: CatalogNames, session: NameScope) -> Iterator[str]:
    """Columns of the tables that the statement names; before it names one, of all the session's."""
    words = {word.strip('"').replace('""', '"') for word in _WORD.findall(statement)}
    named = [table for table in names.tables if table.table in words]
    for table in named or (table for table in names.tables if _is_of(table, session)):
        yield from map(column_text, table.columns)
