"""The origin of a catalog update: the request that led to it, kept for as long as the log."""

import json
from hashlib import sha256
from typing import Self

from keys.model.records import ClientRequirements
from keys.value import StoredPart

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
    Only the first update of a procedure has it."""
    cut: CutStatement | None = None
    """None: `statement` is whole."""

    @classmethod
    def of(cls, client: ClientRequirements, *, is_first: bool) -> Self:
        """*is_first*: the procedure has made no version yet."""
        by, request_id = client.submitted_by, client.request_id
        if not is_first:
            return cls(by=by, request_id=request_id)
        text = json.dumps(client.statement, separators=(",", ":"), ensure_ascii=False)
        raw = text.encode(errors="replace")
        if len(raw) <= STATEMENT_BYTES_MAX:
            return cls(by=by, request_id=request_id, statement=raw.decode())
        return cls(
            by=by,
            request_id=request_id,
            statement=raw[:STATEMENT_BYTES_MAX].decode(errors="ignore"),
            cut=CutStatement(bytes=len(raw), sha256=sha256(raw).hexdigest()),
        )
