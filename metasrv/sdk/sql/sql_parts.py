"""SQL text divided among those who carry it out: statements about the catalog are metasrv's, those
about rows a frontend's. Pure.

Each part is sent by itself. What a server says of places in its part is told of the whole text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from metasrv_base.errors import MetaError
from metasrv_base.sql.faults import excerpt, position
from metasrv_base.sql.rows.statement_kinds import is_of_rows
from metasrv_base.sql.split import StatementText, split

ROWS_CHARS_MAX = 256 << 10
"""The bound on the statements about rows that are sent at once, if they are several: a frontend
takes bodies of 1 MiB."""
ROWS_STATEMENTS_MAX = 1_000
"""The most statements that a frontend takes at once."""


@dataclass(frozen=True, slots=True)
class SqlPart:
    """Statements that follow one another, and are carried out by one server."""

    source: str
    """All of the text."""
    begin: int
    end: int
    of_rows: bool
    number: int
    """Statements before it."""
    done: int = 0
    """Characters of it that are done: its rest alone is sent."""

    @property
    def text(self) -> str:
        """Blanks stand for the characters that are done, so that places stay the same."""
        blank = "".join(char if char == "\n" else " " for char in self._done_text)
        return blank + self.source[self.begin + self.done : self.end]

    @property
    def _done_text(self) -> str:
        return self.source[self.begin : self.begin + self.done]

    def rest(self, offset: int) -> "SqlPart":
        """The same part, with its statements before *offset* done."""
        return replace(self, done=offset)

    def placed(self, error: MetaError, begin: int | None = None) -> MetaError:
        """The same error, with the statement and the place in the whole text. *begin*: where its
        statement begins in `text`, if the error does not say it.

        Facts: `statement`, the number of the statement at fault; those before it are done, unless
        `statements_done` says that fewer are. One that names no statement is of what was sent as a
        whole, none of which is done.
        """
        before_it = self.number + sum(1 for _ in split(self._done_text))
        facts, offset = dict(error.facts), self._offset(error)
        if begin is not None:
            offset = self.begin + begin if offset is None else offset
            facts["statement"] = self._number_at(self.begin + begin)
        elif isinstance(statement := facts.get("statement"), int):
            facts["statement"] = statement + before_it
        elif before_it:
            facts["statement"] = before_it + 1 if offset is None else self._number_at(offset)
            facts["statements_done"] = before_it
        if offset is not None and (self.begin or self.done or begin is not None):
            facts["line"], facts["column"] = position(self.source, offset)
            facts["excerpt"] = excerpt(self.source, offset)
            if error.code == "invalid-sql" and self.begin:
                facts.pop("detail", None)  # names the place in the part: made anew of these facts
        return type(error)(error.code, **facts)

    def _offset(self, error: MetaError) -> int | None:
        """The place in the whole text that the error names in `text`; None: it names none."""
        line, column = error.facts.get("line"), error.facts.get("column")
        if not isinstance(line, int) or not isinstance(column, int):
            return None
        begin = self.begin
        for _ in range(line - 1):
            begin = self.source.find("\n", begin) + 1
        return begin + column - 1

    def _number_at(self, offset: int) -> int:
        """The number in the whole text of the statement at *offset*, or before it."""
        inside = split(self.source[self.begin : self.end])
        begun = takewhile(lambda text: self.begin + text.start <= offset, inside)
        return self.number + max(1, sum(1 for _ in begun))


def parts_of(source: str) -> Iterator[SqlPart]:
    """Yields the parts in order. The first begins where the text does, each other with its first
    statement. Raises Refused `invalid-sql` for a string, a name or a comment that does not end."""
    part: SqlPart | None = None
    is_in_batch = False
    for number, text in enumerate(split(source)):
        word = source[text.start : text.start + 6].upper()
        of_rows = not is_in_batch and is_of_rows(text)
        is_in_batch = (is_in_batch or word.startswith("BEGIN")) and word != "COMMIT"
        if part is not None and _goes_on(part, text, of_rows, number):
            part = SqlPart(source, part.begin, text.end, of_rows, part.number)
            continue
        if part is not None:
            yield part
        begin = 0 if part is None else text.start
        part = SqlPart(source, begin, text.end, of_rows, number)
    if part is None:
        yield SqlPart(source, 0, len(source), of_rows=False, number=0)
    else:
        yield part


def _goes_on(part: SqlPart, text: StatementText, of_rows: bool, number: int) -> bool:
    if of_rows != part.of_rows:
        return False
    is_short = text.end - part.begin <= ROWS_CHARS_MAX
    return not of_rows or (is_short and number - part.number < ROWS_STATEMENTS_MAX)
