"""The holders of schema leases in one term: registrations in the store, the rest in memory."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from keys.catalog.follower import Follower
from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.committer import Committer, StaleRead
from keys.commit.txn import Txn, snapshot
from keys.key import Range
from keys.model.cluster import Candidate, CandidateKey
from keys.model.holders import HolderKey, HolderRecord
from keys.model.transitions import LateHolder, Went
from keys.store.kv import KeyValue, Kv
from keys.store.readable import Tell, readable, skip_silently
from keys.store.scan import scan
from metasrv.holders.audit import SchemaAudit
from metasrv.holders.holder_registry import HolderRegistry, Wait
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Corrupt, MetaError
from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
    Pin,
    SignOffAnswer,
)
from procedures.ports import Behind, Drain

RACES_MAX = 5  # writers of one holder's registration at once; the last one to try is told so
TICK_MS = 500  # between looks for leases that have ended
ACKNOWLEDGEMENTS = 5  # of an idle holder, in one lease
ANY_VERSION = 0
"""No transaction is bound to one below it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SchemaLeaseTiming:
    """Settings of one cluster, in ms; their relations are checked at start
    (metasrv/program/config.py).
    """

    schema_lease_ms: int
    transaction_age_max_ms: int
    store_deadline_ms: int

    @property
    def acknowledge_ms(self) -> int:
        return self.schema_lease_ms // ACKNOWLEDGEMENTS


@dataclass(slots=True)
class HolderSync:
    """The SchemaSync port, and what holders ask of the leader.

    An acknowledgement is no write: it costs the store nothing. A wait ends with the one that it
    waits for, or with the removal of who does not send it; nobody looks again and again.
    """

    cluster_id: str
    kv: Kv
    committer: Committer
    follower: Follower
    clock: Clock
    book: HolderRegistry
    timing: SchemaLeaseTiming
    audit: SchemaAudit = field(default_factory=SchemaAudit)
    _listeners: list[Callable[[int], None]] = field(default_factory=list)

    def on_drained(self, listener: Callable[[int], None]) -> None:
        """*listener* hears how long each wait for holders was, in ms."""
        self._listeners.append(listener)

    async def load(self, tell: Tell = skip_silently) -> None:
        """Loads the registered holders into the book. The caller holds the fence: no earlier leader
        registers a holder any more.

        A holder that cannot be read holds a lease all the same, until the lease has surely ended.
        """
        keys: Range = HolderKey.under()
        items, _ = await scan(self.kv, keys, deadline_ms=self.timing.store_deadline_ms)

        def skip(item: KeyValue, error: Corrupt) -> None:
            tell(item, error)
            with suppress(Corrupt):  # a key that is no holder's
                self.book.found(_unknown(HolderKey.parse(item.key).holder))

        for row in readable(HolderKey, HolderRecord, items, skip):
            self.book.found(row.value)

    async def run(self) -> None:
        """Ends the registrations of holders whose lease has ended, while the term lasts."""
        while True:
            await self.clock.sleep_ms(TICK_MS)
            for holder in self.book.ended(self.clock.mono_ms()):
                await self._end(holder)

    # What holders say ---------------------------------------------------------------------------

    async def register(self, request: HolderRegisterRequest) -> HolderRegisterAnswer:
        """Durable when it returns. Of two processes with one id the newest registered is heard.

        The version of the catalog is taken after the commit: a step that looked at the holders
        without finding this one waits for no newer one.
        """
        self._same_cluster(request.cluster_id or self.cluster_id)
        holder = HolderRecord(
            holder_id=request.holder_id,
            incarnation=request.incarnation,
            address=request.address,
            version=request.version,
            registered_at_ms=self.clock.wall_ms(),
        )
        metasrvs = await self._metasrvs()
        entry = self.book.entry(holder.holder_id)
        if entry is None or entry.holder.incarnation != holder.incarnation:
            await self._store(holder)
        version, now_ms = self.follower.catalog.version, self.clock.mono_ms()
        self.book.registered(holder, version, request.pinned, now_ms)
        if entry is None or entry.holder.incarnation != holder.incarnation:
            self.audit.gone(holder.holder_id)
        log.info("holder_registered", holder=holder.holder_id, incarnation=holder.incarnation)
        return HolderRegisterAnswer(
            cluster_id=self.cluster_id,
            term=self.committer.term,
            lease_ms=self.timing.schema_lease_ms,
            acknowledge_ms=self.timing.acknowledge_ms,
            transaction_age_max_ms=self.timing.transaction_age_max_ms,
            catalog_version=version,
            metasrvs=metasrvs,
        )

    def acknowledge(self, request: AcknowledgeRequest) -> AcknowledgeAnswer:
        """Raises as HolderRegistry.acknowledged, and Conflict("wrong-cluster")."""
        self._same_cluster(request.cluster_id)
        entry = self.book.entry(request.holder_id)
        before = None if entry is None or entry.heard_ms is None else entry.pinned
        is_newer = self.book.acknowledged(request, self.clock.mono_ms())
        if is_newer and before is not None:  # what it did under an earlier leader is not known
            self._look(request, before)
        return AcknowledgeAnswer(
            sequence=request.sequence,
            term=self.committer.term,
            lease_ms=self.timing.schema_lease_ms,
            acknowledge_ms=self.timing.acknowledge_ms,
            transaction_age_max_ms=self.timing.transaction_age_max_ms,
            catalog_version=self.follower.catalog.version,
        )

    def _look(self, request: AcknowledgeRequest, before: Mapping[int, Pin]) -> None:
        tables = self.follower.catalog.tables

        def floor_of(table_id: int) -> int | None:
            table = tables.get(table_id)
            return None if table is None else table.info.schema_floor

        for violation in self.audit.heard(request.holder_id, before, request.pinned, floor_of):
            log.error(
                "schema_audit_failed",
                holder=violation.holder,
                table_id=violation.table_id,
                schema_version=violation.schema_version,
                floor=violation.floor,
                transaction=violation.transaction,
                runbook="schema-audit",
            )

    async def sign_off(self, holder_id: str, incarnation: str) -> SignOffAnswer:
        """Durable when it returns: no step waits for this holder. Raises as `acknowledge`."""
        await self._remove(holder_id, incarnation)
        log.info("holder_signed_off", holder=holder_id, incarnation=incarnation)
        return SignOffAnswer(holder_id=holder_id)

    # The SchemaSync port ------------------------------------------------------------------------

    def behind(self, table_id: int, schema_version: int | None) -> tuple[Behind, ...]:
        """Returns holders that are behind, as the port says; those that a wait which is under way
        still waits for."""
        waiting = self.book.waiting(table_id, schema_version or ANY_VERSION)
        wait = waiting or self._wait(table_id, schema_version)
        return self.book.behind(wait, self.clock.mono_ms())

    def statement_p99_ms(self) -> float | None:
        heartbeat_p99_ms = (entry.statement_p99_ms for entry in self.book.entries())
        return max((p99_ms for p99_ms in heartbeat_p99_ms if p99_ms is not None), default=None)

    def must_be_sound(self, table_id: int) -> None:
        self.audit.must_hold(table_id)

    async def drained(self, table_id: int, schema_version: int | None) -> Drain:
        began_ms, over = self.clock.mono_ms(), asyncio.Event()
        await self._followed(table_id, schema_version)
        wait, late = self._wait(table_id, schema_version, over.set), list[LateHolder]()

        def note(holder_id: str, went: Went, transaction: str | None) -> None:
            ms = self.clock.mono_ms() - began_ms
            late.append(LateHolder(holder=holder_id, ms=ms, went=went, transaction=transaction))

        wait.went = note
        assert wait.need <= self.follower.catalog.version, "waits for what is not published"
        self.book.begin(wait)
        try:
            await over.wait()
        finally:
            self.book.end(wait)
        for listener in self._listeners:
            listener(self.clock.mono_ms() - began_ms)
        return Drain(len(self.book.entries()), tuple(late))

    async def _followed(self, table_id: int, schema_version: int | None) -> None:
        """A leader that stood still may read in the store what the next one has published before
        its log has it. Raises Unavailable("stale")."""
        while (need := self._wait(table_id, schema_version).need) > self.follower.catalog.version:
            await self.follower.wait_for(need, deadline_ms=self.timing.store_deadline_ms)

    def _wait(
        self, table_id: int, schema_version: int | None, over: Callable[[], None] = lambda: None
    ) -> Wait:
        """Returns the wait for a schema version. A holder that has the catalog version that
        published it knows the transition; one that knows that a table is hidden starts nothing with
        it; for a table that is gone, a holder must have the newest catalog version known here."""
        catalog = self.follower.catalog
        table = catalog.tables.get(table_id)
        if table is None:
            need = catalog.version
        elif schema_version is None:
            return Wait(table_id, ANY_VERSION, table.catalog_version, over)
        elif table.info.is_hidden:
            need = table.catalog_version
        elif table.info.schema_version < schema_version:
            need = catalog.version + 1
        else:
            need = self._published_at(table, schema_version)
        return Wait(table_id, schema_version or ANY_VERSION, need, over)

    def _published_at(self, table: CatalogTable, schema_version: int) -> int:
        """Returns the catalog version that published the schema version. Goes back from change to
        change of the table, to the oldest update that is kept: holders need not know later changes
        of floors or routes."""
        version = table.catalog_version
        while (before := self.follower.at(version - 1)) is not None:
            older = before.tables.get(table.info.table_id)
            if older is None or older.info.schema_version < schema_version:
                break
            version = older.catalog_version
        return version

    # The store ----------------------------------------------------------------------------------

    async def _end(self, holder: HolderRecord) -> None:
        """Tried again at the next look if it cannot be done now."""
        try:
            await self._remove(holder.holder_id, holder.incarnation)
        except MetaError as error:
            log.warning("holder_not_removed", holder=holder.holder_id, error=error.code)
        else:
            log.warning("schema_lease_ended", holder=holder.holder_id)

    async def _remove(self, holder_id: str, incarnation: str) -> None:
        """Removes a registration. Nothing is granted to it from before the transaction is sent."""
        self.book.leaves(holder_id, incarnation)
        is_gone = False
        try:
            await self._write(holder_id, lambda stored: _without(stored, incarnation))
            is_gone = True
        except Corrupt:  # the registration cannot be read, and stays; its lease has ended
            is_gone = True
        finally:
            if is_gone:
                self.book.removed(holder_id, incarnation)
                self.audit.gone(holder_id)
            else:
                self.book.stays(holder_id, incarnation)

    async def _store(self, holder: HolderRecord) -> None:
        """Raises as `_write`, and Unavailable("storage-full")."""
        self.committer.must_have_space()
        await self._write(holder.holder_id, lambda stored: holder)

    async def _write(
        self, holder_id: str, change: Callable[[HolderRecord | None], HolderRecord | None]
    ) -> None:
        """Stores the result of *change* for the registration, again after a race; None: deletes it.

        Raises Conflict("object-locked") after too many races, and as Committer.commit.
        """
        key = HolderKey(holder_id)
        for _ in range(RACES_MAX):
            read = await snapshot(self.kv, key, deadline_ms=self.timing.store_deadline_ms)
            stored = read.get(key)
            new = change(stored)
            if new == stored:
                return
            txn = Txn.on(read)
            try:
                await self.committer.commit(txn.delete(key) if new is None else txn.put(key, new))
            except StaleRead:
                continue
            return
        raise Conflict("object-locked", resource=f"holder {holder_id}")

    async def _metasrvs(self) -> list[str]:
        items, _ = await scan(
            self.kv, CandidateKey.under(), deadline_ms=self.timing.store_deadline_ms
        )
        return [row.value.url for row in readable(CandidateKey, Candidate, items, skip_silently)]

    def _same_cluster(self, cluster_id: str) -> None:
        if cluster_id != self.cluster_id:
            raise Conflict("wrong-cluster", expected=self.cluster_id, found=cluster_id)


def _unknown(holder_id: str) -> HolderRecord:
    """A registration that cannot be read."""
    return HolderRecord(
        holder_id=holder_id, incarnation="", address="", version="", registered_at_ms=0
    )


def _without(stored: HolderRecord | None, incarnation: str) -> HolderRecord | None:
    """A newer incarnation stays."""
    return None if stored is None or stored.incarnation == incarnation else stored
