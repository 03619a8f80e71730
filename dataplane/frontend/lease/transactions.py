"""Open transactions, and which version of which table each is bound to: what a holder has pinned.

Pure: `now_ms` is an argument. One event loop owns it; version and pins are read without an await
between them, so an acknowledgement says both as they are at one moment
(metasrv_base/wire/frontend/holders.py).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.frontend.holders import Pin

OPEN_MAX = 10_000
"""Transactions of one process: each holds memory, and what it pins goes into acknowledgements."""


@dataclass(slots=True)
class Transaction:
    """One request, from its first byte to its answer; a scan, until its last page."""

    id: str
    began_ms: int
    bound: dict[int, int] = field(default_factory=dict)
    """Table id -> schema version."""
    max_lag_ms: int | None = None
    """The age that rows of its reads may have; None: leaders answer."""
    answer_by_ms: int | None = None
    """The time at which whoever asked waits no longer; None: it has not said."""


class Transactions:
    def __init__(self, on_freed: Callable[[int, int], None] = lambda table, version: None) -> None:
        self.age_max_ms = 0
        """The highest age of a transaction, as the leader sets it; 0: it has not said any yet, and
        nothing may begin."""
        self._on_freed = on_freed
        """Called with each table and version that a transaction is no longer bound to."""
        self._open: dict[str, Transaction] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, now_ms: int, max_lag_ms: int | None = None) -> Transaction:
        """Raises Unavailable when too many are open: back-pressure, not memory."""
        if len(self._open) >= OPEN_MAX:
            raise Unavailable("not-ready", what="the frontend", reason="too many transactions")
        transaction = Transaction(uuid4().hex, now_ms, max_lag_ms=max_lag_ms)
        self._open[transaction.id] = transaction
        return transaction

    @contextmanager
    def running(self, now_ms: int, max_lag_ms: int | None = None) -> Iterator[Transaction]:
        transaction = self.begin(now_ms, max_lag_ms)
        try:
            yield transaction
        finally:
            self.end(transaction)

    def bind(self, transaction: Transaction, table_id: int, schema_version: int) -> None:
        """Binds a transaction to a version, or moves it from an older one to a newer."""
        before = transaction.bound.get(table_id)
        transaction.bound[table_id] = schema_version
        if before is not None and before != schema_version:
            self._on_freed(table_id, before)

    def end(self, transaction: Transaction) -> None:
        if self._open.pop(transaction.id, None) is not None:
            for table_id, schema_version in transaction.bound.items():
                self._on_freed(table_id, schema_version)

    def until_ms(self, transaction: Transaction) -> int:
        """The time at which a transaction is too old."""
        return transaction.began_ms + self.age_max_ms

    def check_age(self, transaction: Transaction, now_ms: int) -> None:
        """Raises Conflict `transaction-too-old`."""
        if now_ms >= self.until_ms(transaction):
            raise Conflict("transaction-too-old", limit_s=self.age_max_ms / 1000)

    def pins(self, now_ms: int) -> tuple[Pin, ...]:
        """Pins: the oldest version in use of each table, with the oldest transaction that uses
        it."""
        oldest: dict[int, tuple[int, int, str]] = {}
        for transaction in self._open.values():
            for table_id, version in transaction.bound.items():
                use = (version, transaction.began_ms, transaction.id)
                oldest[table_id] = min(use, oldest.get(table_id, use))
        return tuple(
            Pin(table_id=table, schema_version=version, transaction=id, age_ms=now_ms - began_ms)
            for table, (version, began_ms, id) in oldest.items()
        )
