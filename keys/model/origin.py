"""The origin of a catalog update: the request that led to it, kept for as long as the log."""

import json
from hashlib import sha256
from typing import Self

from pydantic import Field

from keys.model.records import ProcedureRecord
from keys.value import StoredPart, is_none

STATEMENT_BYTES_MAX = 4_096  # of one statement in the log: a table of some 50 columns


class CutStatement(StoredPart):
    """The whole of a statement of which the log keeps the beginning."""

    bytes: int
    sha256: str


class Origin(StoredPart):
    """The request behind an update. Its principal and its statement; never a token or a header."""

    by: str
    """The principal; `metasrv` for what the service does by itself."""
    request_id: str
    statement: str | None = None
    """{method, path, query, body} as sent, as JSON without white space, up to STATEMENT_BYTES_MAX.
    Only the first update of a procedure has it; that of a child has its parent's."""
    cut: CutStatement | None = None
    """The statement as it is cut; None if `statement` is whole."""
    parent: str | None = Field(default=None, exclude_if=is_none)
    """The procedure that submitted the update's own; None: the client did."""

    @classmethod
    def of(cls, record: ProcedureRecord) -> Self:
        """The origin of the next update of a procedure."""
        by, request_id = record.client.submitted_by, record.client.request_id
        parent = record.parent
        if record.catalog_version is not None:
            return cls(by=by, request_id=request_id, parent=parent)
        text = json.dumps(record.client.statement, separators=(",", ":"), ensure_ascii=False)
        raw = text.encode(errors="replace")
        if len(raw) <= STATEMENT_BYTES_MAX:
            return cls(by=by, request_id=request_id, statement=raw.decode(), parent=parent)
        return cls(
            by=by,
            request_id=request_id,
            statement=raw[:STATEMENT_BYTES_MAX].decode(errors="ignore"),
            cut=CutStatement(bytes=len(raw), sha256=sha256(raw).hexdigest()),
            parent=parent,
        )
