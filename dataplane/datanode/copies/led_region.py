"""A region with copies that this node leads: what it orders waits for them (P5.9, P5.12).

All of it runs on the event loop, but the calls into the region, which run in threads.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pyarrow as pa
import structlog

from dataplane.datanode.copies.members import addresses, leader_of, set_of, with_change
from dataplane.region.copies.leader_view import NOTHING, CopyName, LeaderView, RecordState
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.engine.writer import OrderedGroup
from dataplane.region.following.copy_region import StreamedRecords
from dataplane.region.following.leader_stream import LeaderStream
from dataplane.region.following.leading import LedOpening
from dataplane.region.format.schema import RegionSchema, joined
from dataplane.region.log.log_writer import PositionedRecord
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.address_book import AddressBook
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from metasrv_base.wire.node.batches import BatchHeader
from metasrv_base.wire.node.copies import RegionCopies
from metasrv_base.wire.node.copy_changes import CopyChange, CopyChangeResult

FOR_GOOD = frozenset({"version-mismatch", "stale-epoch"})
FAULT = "a fault of the node while it began to lead"

log = structlog.get_logger()

Batches = list[tuple[BatchHeader, pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class LeaderClocks:
    """The times by which a leader judges its copies and itself."""

    awake_ms: Callable[[], int]
    """The time during which the process ran (`AwakeTime`)."""
    has_promise_ended: Callable[[], bool]
    """Whether the last promise that this copy gave to another leader has ended. Before that it has
    no copy added to its set (docs/decisions/0362)."""


class LedRegion:
    """Invariant: a group is in memory, and its writers are answered, once every copy that the view
    requires has it durably."""

    def __init__(
        self,
        opening: LedOpening,
        copies: RegionCopies,
        clocks: LeaderClocks,
        on_news: Callable[["LedRegion"], None],
        newer: AddressBook | None = None,
    ) -> None:
        """Sends nothing before `run`. *on_news*: called when a copy has something to be sent.
        *newer*: addresses that are newer than those of orders."""
        self.region = opening.region
        self.region_id = opening.region.spec.region_id
        self.epoch = opening.region.opening.epoch
        self.copies = copies
        self._opening, self._clocks, self._on_news = opening, clocks, on_news
        self._now_ms, self._addresses = clocks.awake_ms, newer or AddressBook()
        members = set_of(copies, self.epoch)
        self.view = LeaderView.open(
            leader_of(copies), members, copies.min_in_sync, opening.log, self._now_ms()
        )
        if copies.last_leaves:
            self.view.expect_leave()
        self.stream = LeaderStream(opening.region, self.view)
        self.ended: MetaError | None = None
        """The reason why this node leads the region no more; None: it does."""
        self.on_end: Callable[[MetaError], None] = lambda _: None
        self.on_readable: Callable[[], None] = lambda: None
        self.on_doubt: Callable[[MetaError, MetaError], None] = lambda _, __: None
        """Called when what waits for copies may wait for long, with what whoever asked is told, and
        whoever waits behind it."""
        self.is_readable = False
        """Whether every required copy has what the epoch was opened with, and it is in memory, with
        the schema of the orders that came before."""
        self._first_schema = opening.schema
        """The schema that orders have told before the region is readable."""
        self._refused_version: int | None = None
        """The version of the copies from which a change was refused for good."""
        self._waiting: int | None = None
        """The sequence of the group that waits for copies; None: no group does."""
        self._moved = asyncio.Event()
        self._told: dict[CopyName, int] = {}
        """The common sequence that each copy was told of."""

    # -- the set

    @property
    def is_alone(self) -> bool:
        """Whether nobody else is in the set, or joins it: then nobody else can be promoted."""
        return len(self.view.required) == 1

    def hear(self, copies: RegionCopies) -> None:
        """Takes the copies that an order of this epoch names; older ones change nothing."""
        if copies.version < self.view.members.version:
            return
        self.copies, self.view.min_in_sync = copies, copies.min_in_sync
        self.view.read_route(set_of(copies, self.epoch), self._now_ms())
        if copies.last_leaves:
            self.view.expect_leave()
        self._news()

    def next_change(self) -> CopyChange | None:
        """The change of the set that metasrv is to be asked for now. A copy that is to join is
        required from here on."""
        now_ms, view = self._now_ms(), self.view
        if self.ended is not None or self._refused_version == view.members.version:
            return None
        if view.joining is not None:
            return self._change("join", view.joining, "it has all records")
        for leaving, reason in view.leaves(now_ms).items():
            view.expect_leave()
            change = self._change("leave", leaving, reason)
            eligible = self.is_readable and view.may_be_eligible(leaving)
            return change.model_copy(update={"eligible": eligible})
        if view.ask_again(now_ms):
            self._on_news(self)
        copy = view.joins_next(self.is_readable and self._clocks.has_promise_ended())
        if copy is None:
            return None
        view.join(copy, now_ms)
        return self._change("join", copy, "it has all records")

    def changed(self, change: CopyChange, result: CopyChangeResult) -> None:
        """Takes what metasrv has answered. The set of a version that this change has made is known;
        other versions come by orders."""
        version, is_next = self.view.members.version, change.copies_version + 1
        if result.copies_version == is_next and version == change.copies_version:
            self.hear(with_change(self.copies, change, is_next, eligible=result.eligible))
        elif result.error is not None and result.error.code in FOR_GOOD:
            self._refused_version = change.copies_version

    def _change(self, kind: Literal["join", "leave"], copy: CopyName, reason: str) -> CopyChange:
        return CopyChange(
            region_id=str(self.region_id),
            epoch=self.epoch,
            copies_version=self.view.members.version,
            change=kind,
            node=copy.node,
            root=copy.root,
            reason=reason,
        )

    def end(self, error: MetaError) -> None:
        """Nothing is ordered, acknowledged or sent any more."""
        if self.ended is None:
            self.ended = error
            self._moved.set()
            self.on_end(error)

    # -- reads and writes

    async def run(self) -> None:
        """Makes the log of the opening readable once all copies that are required have it. Then
        they are told of the schema with which it was opened: nothing is read or written before it
        has taken effect."""
        self._on_news(self)
        try:
            while not self.view.may_read and self.ended is None:
                await self._next_move()
            if self.ended is None:
                await asyncio.to_thread(self._opening.count)
                await self._declare()
        except MetaError as error:
            self.end(error)
        except Exception:  # it ends this opening, and not the node
            log.exception("led_region_failed", region_id=self.region_id)
            self.end(Unavailable(what=f"region {self.region_id}", reason=FAULT))

    async def _declare(self) -> None:
        anew = self._opening.declares
        while self.ended is None and (anew or self._lacks(self._first_schema)):
            await self._replicate(RegionChange(self._first_schema), anew=anew)
            anew = False
        if self.ended is None:
            self.is_readable = True
            self.on_readable()

    def _lacks(self, schema: RegionSchema) -> bool:
        return joined(self.region.schema, schema) != self.region.schema

    def must_be_readable(self) -> None:
        """Raises Unavailable while a row may be missing that a former leader acknowledged, or once
        another one leads: a read that began before must not be answered then."""
        if self.ended is not None:
            reason = "this node leads it no more"
            raise Unavailable("not-ready", what=f"region {self.region_id}", reason=reason)
        if not self.is_readable:
            reason = "its copies lack what it opened its epoch with"
            raise Unavailable("not-ready", what=f"region {self.region_id}", reason=reason)

    def must_order(self) -> None:
        """Raises Unavailable for a write that is not attempted: `too-few-copies` below the
        minimum."""
        self.must_be_readable()
        if not self.view.may_order:
            raise Unavailable("too-few-copies", **self._too_few())

    async def until_it_has_all(self, copy: CopyName) -> None:
        """Returns once *copy* has the whole log. Raises Unavailable once this node leads no
        more."""
        while self.view.durable_at(copy) < self.view.end:
            self.must_be_readable()
            await self._next_move()
        self.must_be_readable()

    async def apply(self, batches: Batches) -> list[Applied | MetaError]:
        """Writes a group, as `RegionWriter.apply`, and returns when all copies that are required
        have it. One at a time. Raises Unknown for a group that is in the log, if this node leads no
        more before they have it. Takes out the batches once they are ordered: it may be long until
        the copies have them, and their writers may have been answered by then."""
        self.must_order()
        ordered = await asyncio.to_thread(self.region.writer.order, batches)
        batches.clear()
        failure: Unknown | None = None
        if ordered.logged is not None:
            self.stream.appended(ordered.logged, self._now_ms())
            self._on_news(self)
            self._waiting = ordered.position.sequence
            try:
                state = await self._counted(ordered.logged)
            finally:
                self._waiting = None
            if state is RecordState.TOO_FEW:
                failure = Unknown(reason="too-few-copies", **self._too_few())
        return await asyncio.to_thread(self._settle, ordered, failure)

    def is_change_due(self, schema: RegionSchema) -> bool:
        """Whether the schema of an order to lead is more than the region has, so that a change is
        due. False also before the region is readable: it has this schema when it becomes so."""
        if not self.is_readable:
            self._first_schema = joined(self._first_schema, schema)
        return self.is_readable and self._lacks(schema)

    async def declare(self, schema: RegionSchema) -> None:
        """Takes the schema of an order to lead, as the opening does: also below the minimum. Copies
        follow, and join, only once the route says that the region is open, which waits for this
        order. One at a time, and no group meanwhile. Raises as `change`, and Unavailable
        `too-few-copies` while copies that have left may lead."""
        self.must_be_readable()
        if self.view.is_frozen:
            raise Unavailable("too-few-copies", **self._too_few())
        await self._replicate(RegionChange(schema))

    async def change(self, change: RegionChange | Ingest) -> int:
        """Changes the schema and marks, or takes files, in order with the groups, and returns when
        all copies that are required have the record, with its files, and it has taken effect here.
        One at a time, and no group meanwhile. Returns `OrderedChange.version`; raises as `apply`,
        and as `RegionChanges.order`."""
        self.must_order()
        version, state = await self._replicate(change)
        if state is RecordState.TOO_FEW:
            raise Unknown(reason="too-few-copies", **self._too_few())
        return version

    async def _replicate(
        self, change: RegionChange | Ingest, *, anew: bool = False
    ) -> tuple[int, RecordState]:
        ordered = await asyncio.to_thread(partial(self.region.changes.order, change, anew=anew))
        if ordered.logged is None or ordered.record is None:
            return ordered.version, RecordState.COUNTS
        self.stream.appended(ordered.logged, self._now_ms())
        self._on_news(self)
        state = await self._counted(ordered.logged)
        await asyncio.to_thread(self.region.changes.settle, ordered.record)
        return ordered.version, state

    def _settle(self, ordered: OrderedGroup, failure: Unknown | None) -> list[Applied | MetaError]:
        answers = self.region.writer.settle(ordered, failure)
        if self.region.maintenance.needs_flush():
            self.region.maintenance.freeze()  # later there may be a group that waits
        return answers

    async def _counted(self, record: PositionedRecord) -> RecordState:
        """Waits until the record counts, or never will. In doubt its bytes are counted among those
        of the node: whoever wrote them, and was counted with them, has an answer then."""
        share = self.region.place.budget.share()
        try:
            while (state := self.view.judge(record.position.sequence)) is RecordState.WAITS:
                if self.ended is not None:
                    reason = "this node leads the region no more"
                    raise Unknown(reason=reason, code=self.ended.code)
                if self.view.is_frozen:
                    share.set(len(record.payload))
                    facts = self._too_few()
                    doubt = Unknown(reason="too-few-copies", **facts)
                    self.on_doubt(doubt, Unavailable("too-few-copies", **facts))
                await self._next_move()
        finally:
            share.set(0)
        return state

    async def _next_move(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    @property
    def waits_for(self) -> Sequence[CopyName]:
        """The copies for which a group waits now; empty: no group waits for any."""
        return () if self._waiting is None else self.view.lacking(self._waiting)

    def _too_few(self) -> dict[str, object]:
        in_sync, least = len(self.view.members.in_sync), self.view.min_in_sync
        return {"region_id": str(self.region_id), "copies": in_sync, "min_in_sync": least}

    # -- the stream

    def note_answer(self, copy: CopyName) -> None:
        """A copy has promised."""
        self.view.note_answer(copy, self._now_ms())

    @property
    def receivers(self) -> Mapping[CopyName, str | None]:
        """The copies that are sent records, with the addresses of their nodes; None: not known."""
        urls, newer = addresses(self.copies), self._addresses
        return {name: newer.get(name.node, urls.get(name)) for name in self.view.receivers}

    def address_of(self, copy: CopyName) -> str | None:
        return self._addresses.get(copy.node, addresses(self.copies).get(copy))

    def tell_senders(self) -> None:
        """There may be something to be sent, or another address to send it to."""
        self._on_news(self)

    def is_due(self, copy: CopyName) -> bool:
        """Whether the copy has something to be sent."""
        if self.ended is not None or copy not in self.view.receivers:
            return False
        return self.has_records_for(copy) or self._told.get(copy, NOTHING) < self.view.common

    def has_records_for(self, copy: CopyName) -> bool:
        """Whether the copy lacks records, as far as this leader knows."""
        return self.view.durable_at(copy) < self.view.end

    def answered(self, copy: CopyName, sent: StreamedRecords, durable: int) -> bool:
        """A copy has the log up to *durable*, by the answer to the last request to it. Returns
        whether it has made progress."""
        before = self.view.durable_at(copy)
        self._told[copy] = max(sent.common, self._told.get(copy, NOTHING))
        if durable < before:
            self.view.lost(copy, sent.epoch, durable, self._now_ms())
        else:
            self.view.acknowledged(copy, sent.epoch, durable, self._now_ms())
        self._news()
        return self.view.durable_at(copy) > before

    def refused(self, error: MetaError) -> None:
        """A copy follows the leader of a higher epoch: this node leads no more."""
        epoch = error.facts.get("epoch")
        if error.code == "stale-epoch" and isinstance(epoch, int) and epoch > self.epoch:
            facts = {"region_id": str(self.region_id), "found": self.epoch}
            self.end(Conflict("stale-epoch", epoch=epoch, **facts))

    def _news(self) -> None:
        self.stream.let_go()
        self._moved.set()
        self._on_news(self)
