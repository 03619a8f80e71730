"""Runs each statement as a transaction with one table, under the newest schema known."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from dataplane.frontend.catalog.catalog import LiveCatalog, Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.lease.holder import HolderLoop
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transaction, Transactions
from dataplane.frontend.statements.regions import CallBudget
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, NotFound, Unavailable

T = TypeVar("T")
CATCH_UP_S_MAX = 2.0
"""The longest wait for the leader's answer on a table that is not known, in s."""


@dataclass(frozen=True, slots=True)
class Statements:
    holder: HolderLoop
    catalog: LiveCatalog
    transactions: Transactions
    clock: Clock
    latency: Latency

    @contextmanager
    def running(
        self, max_lag_ms: int | None = None, answer_by_ms: int | None = None
    ) -> Iterator[Transaction]:
        """A transaction as long as one request. *max_lag_ms*: the age that its rows may have;
        *answer_by_ms*: the time at which whoever asked waits no longer."""
        self.holder.check()
        began_ms = self.clock.mono_ms()
        with self.transactions.running(began_ms, max_lag_ms) as transaction:
            transaction.answer_by_ms = answer_by_ms
            yield transaction
        self.latency.took(self.clock.mono_ms() - began_ms)

    async def bound(self, transaction: Transaction, name: Name) -> Schema:
        """Binds to the newest version known. A table that is not known may have been made a moment
        ago."""
        schema = await self.known(name)
        self.bind(transaction, schema)
        return schema

    async def known(self, name: Name) -> Schema:
        """The newest version known, bound to nothing. Raises NotFound."""
        try:
            return self.catalog.named(name)
        except NotFound:
            await self._catch_up()
            return self.catalog.named(name)

    def bind(self, transaction: Transaction, schema: Schema) -> None:
        """Binds to that version, or a newer one of the same table."""
        self.transactions.bind(transaction, schema.layout.table_id, schema.version)

    async def finished(
        self,
        transaction: Transaction,
        schema: Schema,
        read: Callable[[Schema], Awaitable[T]],
        must_fit: Callable[[Schema], object] = lambda newer: None,
    ) -> T:
        """Finishes a read under the newest schema, if the one that it began with has ended
        meanwhile. *must_fit* raises if it cannot be read under that: then no later one is waited
        for."""
        until = self.call(transaction).until
        while True:
            try:
                return await read(schema)
            except Conflict as error:
                if error.code != "schema-version-stale":
                    raise
                try:
                    async with asyncio.timeout_at(until):
                        newer = await self.catalog.newer(schema)
                except TimeoutError:
                    raise error from None
                must_fit(newer)
                self.bind(transaction, newer)
                schema = newer

    def check_age(self, transaction: Transaction) -> None:
        """Raises Conflict("transaction-too-old")."""
        self.transactions.check_age(transaction, self.clock.mono_ms())

    def left_s(self, transaction: Transaction) -> float:
        """Seconds until the transaction is too old; never below zero."""
        until_ms = self.transactions.until_ms(transaction)
        return max(0.0, (until_ms - self.clock.mono_ms()) / 1000)

    def call(self, transaction: Transaction) -> CallBudget:
        """The budget of calls until the transaction is too old, or whoever asked waits no
        longer."""
        left_s = self.left_s(transaction)
        if transaction.answer_by_ms is not None:
            left_s = min(left_s, (transaction.answer_by_ms - self.clock.mono_ms()) / 1000)
        until = asyncio.get_running_loop().time() + left_s
        return CallBudget(transaction.id, until, max_lag_ms=transaction.max_lag_ms)

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(CATCH_UP_S_MAX):
                await self.holder.newest()
        except TimeoutError as error:
            raise Unavailable("not-ready", what="the catalog of this frontend") from error
