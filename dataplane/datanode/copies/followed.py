"""The copies of this node, and the requests by which their leaders append to them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import structlog

from dataplane.region.copies.history import LogHistory
from dataplane.region.copies.staleness import CommonAt, CopyStaleness
from dataplane.region.disk.lost import is_lost
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.following.append_body import AppendPart, decode_append
from dataplane.region.following.copy_region import (
    CopyRegion,
    CopyRows,
    LackedFiles,
    StreamedRecords,
)
from metasrv_base.address_book import AddressBook
from metasrv_base.concurrency.reservations import HeldBytes, Reservations
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from metasrv_base.wire.limits import RECORD_BYTES_MAX
from metasrv_base.wire.node.appends import AppendAnswer, AppendedPart
from metasrv_base.wire.node.copies import OrderedCopy
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion, OrderError

T = TypeVar("T")

BODIES_BYTES = 128 << 20
"""Memory for all requests of leaders that are being received or taken at one moment."""
BODY_TIMES = 2
"""The memory that a request takes, by its bytes: as it comes, and its records."""
APPEND_BYTES_MAX = RECORD_BYTES_MAX + (16 << 20)
"""The most bytes of a request: one record, however large, behind smaller ones of other regions
(`senders.REQUEST_BYTES`), and what is around them."""
FAULT = "a fault of the node"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """Bytes of a leader's files that a copy has fetched, of all that it needs."""

    bytes: int
    bytes_total: int


class FetchNeed(NamedTuple):
    """Files that a copy needs of the leader of an epoch."""

    epoch: int
    lacked: LackedFiles | None = None
    """The files that its next record names; None: all that the leader has."""


class FollowedRegion:
    """A copy of a region on this node, in the event loop: one call at a time, in a thread."""

    def __init__(
        self,
        copy: CopyRegion,
        order: CreateRegion | OpenRegion,
        now_ms: Callable[[], int],
        newer: AddressBook | None = None,
    ) -> None:
        """Opens nothing. *now_ms*: of CLOCK_BOOTTIME. *newer*: addresses that are newer than those
        of orders."""
        self.copy = copy
        self._addresses = newer or AddressBook()
        self._now_ms = now_ms
        self.epoch = order.epoch
        """The highest of which an order told."""
        self.leader: OrderedCopy | None = None
        """The leader of that epoch; None: no order named the copies."""
        self.progress: FetchProgress | None = None
        """Files that are fetched now; None: none."""
        self.hear(order)
        self.tidied: RegionMaintenance | None = None
        """The opening in which what crashes have left in the root was removed."""
        self.is_in_doubt = False
        """Whether records failed for the sake of its files, and nobody has looked at them since."""
        self._staleness = CopyStaleness()
        self._common: CommonAt | None = None
        """The last that its leader said."""
        self._is_asked = False
        """Whether a reader has come since the copy had rows that can be read."""
        self._lock = asyncio.Lock()
        self._is_closed = False

    @property
    def root(self) -> str:
        return self.copy.place.root

    def hear(self, order: CreateRegion | OpenRegion) -> None:
        """Takes the epoch and the leader that an order names."""
        self.epoch = order.epoch
        if order.copies is not None:
            leaders = (copy for copy in order.copies.members if copy.role == "leader")
            self.leader = next(leaders, None)

    @property
    def need(self) -> FetchNeed | None:
        """The files that this copy needs: all that its leader has, or those that its next record
        names. None: it needs none."""
        lacks, epoch = self.copy.lacks, self.copy.needs_files
        if lacks is not None:
            return FetchNeed(lacks.epoch, lacks)
        return None if epoch is None else FetchNeed(epoch)

    @property
    def leader_with_files(self) -> OrderedCopy | None:
        """The leader whose files this copy needs, at a node whose address is known. None: it needs
        none, or no order has named that leader yet."""
        leader, need = self.leader, self.need
        if leader is None or need is None or need.epoch != self.epoch:
            return None
        address = self._addresses.get(leader.node, leader.address)
        return None if address is None else leader.model_copy(update={"address": address})

    async def fetching(self, need: FetchNeed, act: Callable[[], T]) -> T:
        """Runs a part of a fetch of files, in a thread. Raises NotFound once the copy is closed,
        Conflict `stale-epoch` once it does not need them, or needs others."""
        async with self._lock:
            if self._is_closed:
                raise NotFound(what="copy", name=self.root)
            if self.need != need:
                epoch = None if self.need is None else self.need.epoch
                raise Conflict("stale-epoch", epoch=epoch, found=need.epoch)
            return await asyncio.to_thread(act)

    async def take(self, root: str, records: StreamedRecords) -> int:
        """Returns the sequence up to which the log is durable. Raises NotFound for another root,
        Conflict `stale-epoch` for a leader of an older epoch, and as `CopyRegion.take`."""
        async with self._lock:
            if self._is_closed or root != self.root:
                raise NotFound(what="copy", name=root)
            if records.epoch < self.epoch:
                raise Conflict("stale-epoch", epoch=self.epoch, found=records.epoch)
            try:
                return await asyncio.to_thread(self.copy.take, records)
            except MetaError as error:
                self.is_in_doubt = self.is_in_doubt or is_lost(error)
                raise

    async def is_lost(self) -> bool:
        """Whether files of a copy in doubt are gone or damaged, as one that starts finds them. It
        is in doubt until then, so that no merge removes files meanwhile."""
        async with self._lock:
            if self._is_closed or not self.is_in_doubt:
                return False
            try:
                await asyncio.to_thread(self.copy.look)
            except MetaError as error:
                return is_lost(error)
            finally:
                self.is_in_doubt = False
            return False

    # -- reads

    def tell(self, position: CommonAt) -> None:
        """The leader says what is common (P4.6)."""
        rows = self.copy.rows
        self._common = position
        self._staleness.tell(position, None if rows is None else rows.applied)

    def rows_within(self, max_lag_ms: int) -> CopyRows:
        """The rows, if they have all that was acknowledged until *max_lag_ms* ago. Raises
        Unavailable `not-ready` otherwise; the fact `lag_ms` is their age, if it is known."""
        rows, now_ms = self.copy.rows, self._now_ms()
        as_of_ms = None if rows is None else self._staleness.as_of_ms(rows.applied)
        self._is_asked = rows is None
        if rows is None or as_of_ms is None or now_ms - as_of_ms > max_lag_ms:
            facts = {} if as_of_ms is None else {"lag_ms": now_ms - as_of_ms}
            what, reason = f"the copy of region {self.copy.region_id}", "its rows are older"
            raise Unavailable("not-ready", what=what, reason=reason, max_lag_ms=max_lag_ms, **facts)
        return rows

    async def open_for_readers(self) -> None:
        """Opens the copy of a process that has started, of which its leader knows that it has all
        records: nothing is sent to it. Only where a reader has asked."""
        async with self._lock:
            common = self._common
            if self._is_closed or not self._is_asked or common is None or self.need is not None:
                return
            self._is_asked = False
            if self.epoch <= common.epoch == self.copy.epoch:
                records = StreamedRecords(common.epoch, LogHistory(), common.sequence, ())
                await asyncio.to_thread(self.copy.take, records)

    async def close(self) -> None:
        """Nothing writes to the root any more."""
        async with self._lock:
            self._is_closed = True
            await asyncio.to_thread(self.copy.close)


class CopyAppends:
    """Takes requests of leaders. *followed*: the copy of a region; raises NotFound without one.
    *on_leader* is called with the node of each leader whose records were taken, *on_lack* when a
    copy waits for files."""

    def __init__(
        self,
        followed: Callable[[int], FollowedRegion],
        on_leader: Callable[[str], None],
        on_lack: Callable[[], None] = lambda: None,
    ) -> None:
        self._followed, self._on_leader, self._on_lack = followed, on_leader, on_lack
        self._bodies = Reservations("records of leaders that are being taken", BODIES_BYTES)

    def room_for(self, body_bytes: int) -> HeldBytes:
        """A context. Raises Unavailable when that memory is taken."""
        return self._bodies.hold(BODY_TIMES * body_bytes)

    async def append(self, body: bytes) -> AppendAnswer:
        """Answers each part in the order of the request, once what it took is durable. Raises
        Refused for a body that cannot be read, of which nothing is taken."""
        parts = await asyncio.to_thread(decode_append, body)
        return AppendAnswer(parts=list(await asyncio.gather(*map(self._take, parts))))

    async def _take(self, part: AppendPart) -> AppendedPart:
        """A fault of our own in one copy leaves the others of the request as they are."""
        region_id = str(part.region_id)
        try:
            followed = self._followed(part.region_id)
            durable = await followed.take(part.root, part.records)
        except MetaError as error:
            facts = OrderError(code=error.code, facts=error.facts)
            return AppendedPart(region_id=region_id, error=facts)
        except Exception:
            log.exception("copy_failed", region_id=part.region_id)
            fault = OrderError(code="not-ready", facts={"reason": FAULT})
            return AppendedPart(region_id=region_id, error=fault)
        if followed.copy.lacks is not None:
            self._on_lack()
        if followed.leader is not None and part.records.epoch == followed.epoch:
            self._on_leader(followed.leader.node)
        return AppendedPart(region_id=region_id, durable=durable)
