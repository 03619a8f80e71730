"""The texts that `executemany` sends: many parameters in each, and each small."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from metasrv.dbapi.placeholders import InsertTemplate, Template, insert_template, template

TEXT_BYTES_MAX = 256 << 10
"""The bound on a text as JSON, unless its only row is larger: a frontend takes bodies of 1 MiB."""
ROWS_MAX = 5_000
"""Rows of one INSERT."""
STATEMENTS_MAX = 1_000
"""Statements of one text."""
_ROW_END = ",\n"
_STATEMENT_END = "\n;\n"
"""On a line of its own: the statement may end in a comment."""


@dataclass(slots=True)
class ParameterBatch:
    """Parameters that are sent at once."""

    texts: list[str] = field(default_factory=list)
    """One for each parameters."""
    size: int = 0
    """The size in bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A statement to be carried out with several parameters."""

    insert: InsertTemplate | None
    """The template of an INSERT; None if each parameters make a statement of their own."""
    whole: Template

    @classmethod
    def of(cls, operation: str) -> "Repeated":
        return cls(insert_template(operation), template(operation))

    def batches(self, parameters: Iterable[Sequence[object]]) -> Iterator[ParameterBatch]:
        """Yields them as they are full: the rest of the parameters is not yet looked at."""
        insert = self.insert
        each, most = (self.whole, STATEMENTS_MAX) if insert is None else (insert.row, ROWS_MAX)
        batch = ParameterBatch()
        for values in parameters:
            text = each.bound(values)
            size = len(orjson.dumps(text))
            is_full = batch.size + size > TEXT_BYTES_MAX or len(batch.texts) == most
            if batch.texts and is_full:
                yield batch
                batch = ParameterBatch()
            batch.texts.append(text)
            batch.size += size
        if batch.texts:
            yield batch

    def text(self, batch: ParameterBatch) -> str:
        if self.insert is None:
            return _STATEMENT_END.join(batch.texts)
        return f"{self.insert.head}{_ROW_END.join(batch.texts)}"
