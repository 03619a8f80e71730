"""SQL text read into what it asks for, a statement at a time. Never guesses: a statement is
understood to its last word, or refused with the place of the first that is not."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from metasrv_base.errors import Refused
from metasrv_base.sql.commands import CHANGES, Begin, Command, Commit, Explain
from metasrv_base.sql.faults import fault_at
from metasrv_base.sql.grammar import namespaces, placing, shows, tables
from metasrv_base.sql.grammar.alter_table import TypeOf, alter_table
from metasrv_base.sql.grammar.create_table import create_table
from metasrv_base.sql.grammar.select_view import reads_view, select_view
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.split import StatementText, split
from metasrv_base.sql.tokens import TextSpan
from metasrv_base.wire.problem.fault_words import fault_of

Read: TypeAlias = Callable[[Reader], Command]

_ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "COPY", "VALUES")
_NO_ROWS = (
    "a statement about the catalog: it reads and writes no rows, which POST /v1/sql of frontends"
    " does"
)


@dataclass(frozen=True, slots=True)
class Statement:
    text: StatementText
    command: Command
    places: Mapping[str, TextSpan]
    """JSON pointer into the body of `command` -> where the text says it."""

    def place_of(self, pointer: str) -> int:
        """The place of what *pointer* points to, or of what holds it: a character of all of
        the text. Whatever no words stand for begins with the statement."""
        while pointer and pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places[pointer].start if pointer in self.places else self.text.start


def statements(source: str, type_of: TypeOf) -> Iterator[Statement]:
    """Yields the statements of a text; each is read when it is asked for, so that *type_of* may
    know what those before it have done. Raises Refused `invalid-sql`."""
    for text in split(source):
        yield statement(text, type_of)


def statement(text: StatementText, type_of: TypeOf) -> Statement:
    """Raises Refused `invalid-sql`, with the place."""
    reader = Reader(text)
    try:
        command = _command(reader, type_of)
    except ValidationError as error:
        raise _beyond_limits(reader, error) from error
    reader.must_end()
    return Statement(text, command, reader.places)


def _command(reader: Reader, type_of: TypeOf) -> Command:
    if reads_view(reader.statement) and reader.takes("SELECT"):
        return select_view(reader)
    if reader.token.word in _ROWS:
        raise reader.unexpected(_NO_ROWS)
    if reader.is_next("EXPLAIN"):
        return _explain(reader, type_of)
    if reader.takes("ALTER", "TABLE"):
        return alter_table(reader, type_of)
    for words, read in _STATEMENTS.items():
        if reader.takes(*words):
            return read(reader)
    raise _unknown(reader)


def _explain(reader: Reader, type_of: TypeOf) -> Explain:
    reader.must_take("EXPLAIN")
    token = reader.token
    change = _command(reader, type_of)
    if not isinstance(change, CHANGES):
        raise reader.unexpected("a change", token=token)
    return Explain(change)


def _unknown(reader: Reader) -> Refused:
    """The refusal of the first word that no statement has there."""
    rows = [("ALTER", "TABLE"), ("EXPLAIN",), *_STATEMENTS]
    depth = 0
    while True:
        word = reader.token.word
        ahead = [words for words in rows if words[depth : depth + 1] == (word,)]
        if word is None or not ahead:
            break
        rows, depth = ahead, depth + 1
        reader.take()
    choices = tuple(dict.fromkeys(words[depth] for words in rows if len(words) > depth))
    choices = choices if depth else (*choices, *_ROWS[:4])  # words of frontends may be misspelled
    return reader.unexpected(", ".join(choices), choices=choices)


def _beyond_limits(reader: Reader, error: ValidationError) -> Refused:
    """The refusal of what a body of the API cannot say, as too many columns."""
    first = error.errors()[0]
    suffix = "".join(f"/{part}" for part in first["loc"])
    spans = (span for pointer, span in reader.places.items() if pointer.endswith(suffix))
    span = next(spans, TextSpan(reader.statement.start, reader.statement.end))
    actual = reader.statement.source[span.start : span.end]
    return fault_at(reader.statement.source, span.start, actual=actual, expected=fault_of(first))


_STATEMENTS: Mapping[tuple[str, ...], Read] = {
    ("CREATE", "TABLE"): create_table,
    ("CREATE", "INDEX"): lambda reader: tables.create_index(reader, unique=False),
    ("CREATE", "UNIQUE", "INDEX"): lambda reader: tables.create_index(reader, unique=True),
    ("CREATE", "SCHEMA"): namespaces.create_schema,
    ("CREATE", "DATABASE"): namespaces.create_schema,
    ("CREATE", "CATALOG"): namespaces.create_catalog,
    ("CREATE", "PLACEMENT"): placing.create_placement,
    ("CREATE", "TABLESPACE"): placing.create_tablespace,
    ("ALTER", "INDEX"): tables.alter_index,
    ("ALTER", "PLACEMENT"): placing.alter_placement,
    ("ALTER", "TABLESPACE"): placing.alter_tablespace,
    ("DROP", "TABLE"): tables.drop_table,
    ("DROP", "INDEX"): tables.drop_index,
    ("DROP", "SCHEMA"): namespaces.drop_schema,
    ("DROP", "DATABASE"): namespaces.drop_schema,
    ("DROP", "CATALOG"): namespaces.drop_catalog,
    ("DROP", "PLACEMENT"): placing.drop_placement,
    ("DROP", "TABLESPACE"): placing.drop_tablespace,
    ("RENAME", "TABLE"): tables.rename_table,
    ("EXCHANGE", "TABLES"): tables.exchange_tables,
    ("TRUNCATE",): tables.truncate_table,
    ("UNDROP", "TABLE"): tables.undrop_table,
    ("COMMENT", "ON", "TABLE"): tables.comment_on_table,
    ("COMMENT", "ON", "PLACEMENT"): placing.comment_on_placement,
    ("COMMENT", "ON", "TABLESPACE"): placing.comment_on_tablespace,
    ("SHOW",): shows.show,
    ("DESCRIBE",): shows.describe,
    ("DESC",): shows.describe,
    ("BEGIN",): lambda reader: Begin(),
    ("COMMIT",): lambda reader: Commit(),
}
"""First words -> what reads the rest."""
