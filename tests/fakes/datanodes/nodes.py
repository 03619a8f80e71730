"""Datanodes in memory: regions, epochs, tombstones, and the order rules of P3 and P5.

Everything a real node does once and durably happens here at once; what a test makes unsure is the
way to it and back (tests/fakes/faults.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dataplane.region.format.families import ROWS
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment, Snapshot
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DataFile,
    DiscardRoot,
    DropRegion,
    IngestFiles,
    OpenRegion,
    Order,
    OrderError,
    OrderResult,
    SetSchema,
)
from tests.fakes.datanodes.disk import Folder, Rows, Storage
from tests.fakes.datanodes.index_rows import offenders

LOG = "wal-1"
"""A file of this name stands for a log segment."""


class Opening(StrEnum):
    """The progress of a node with a region that it was ordered to open."""

    ASKED = "before it began"
    FENCED = "behind its fences"
    MADE = "before it answered"
    ANSWERED = "as it answered"
    ANNOUNCED = "before it was leased"


@dataclass
class Serving:
    """A region that a node has open."""

    epoch: int
    root: str


@dataclass
class Executed:
    """The last order a node executed for a region: a repeat is given the stored answer."""

    place: tuple[int, int]
    """Term and number."""
    result: OrderResult


@dataclass
class FakeNode:
    """One datanode."""

    node_id: str
    storage: Storage
    alive: bool = True
    silent: bool = False
    """Its heartbeats are heard, yet nobody reaches it."""
    refuses: dict[str, MetaError] = field(default_factory=dict)
    """Kind of order, or `prepare` -> what it is answered."""
    dies_at: "Opening | None" = None
    """The stage in the opening of the next region at which the node dies; None: it does not die."""
    disk_free_bytes: int = 1 << 40
    term: int = 0
    serving: dict[str, Serving] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    executed: dict[str, Executed] = field(default_factory=dict)
    deaths: int = 0
    sequence: int = 0
    """The number of the last heartbeat that was sent."""
    sent_ms: dict[int, int] = field(default_factory=dict)
    """Sequence -> when that heartbeat was sent, monotonic ms."""
    effects: list[str] = field(default_factory=list)
    """Effects of orders, as `op region epoch`."""

    @property
    def root(self) -> str:
        return f"/disks/{self.node_id}"

    @property
    def is_reached(self) -> bool:
        return self.alive and not self.silent

    @property
    def incarnation(self) -> str:
        """The process that runs, or runs next."""
        return f"{self.node_id}-{self.deaths}"

    def die(self) -> None:
        """The process ends. Its disk stays."""
        self.alive = False
        self.deaths += 1
        self.serving.clear()
        self.sequence, self.sent_ms = 0, {}

    def execute(self, term: int, orders: Sequence[Order]) -> tuple[OrderResult, ...]:
        """Raises Conflict for a deposed leader; a failure of one order stands in its result."""
        if term < self.term:
            raise Conflict("stale-epoch", term=term, current_term=self.term)
        self.term = term
        return tuple(self._take(term, order) for order in orders)

    def _take(self, term: int, order: Order) -> OrderResult:
        place, last = (term, order.number), self.executed.get(order.region_id)
        if last is not None and place == last.place:
            return last.result
        if last is not None and place < last.place:
            return _result(order, Conflict("stale-epoch", number=order.number))
        try:
            self._carry_out(order)
        except (Refused, Conflict) as error:
            result = _result(order, error)
        except MetaError as error:
            return _result(order, error)  # not an outcome: the same order may be tried again
        else:
            result = _result(order, None).model_copy(update={"floor_version": self._floor(order)})
        self.executed[order.region_id] = Executed(place, result)
        return result

    def _must_take(self, order: Order) -> None:
        prepares = isinstance(order, IngestFiles) and order.prepares
        asked = "prepare" if prepares else order.op
        if asked in self.refuses:
            raise self.refuses[asked]
        if order.region_id in self.tombstones and order.op in ("create", "open"):
            raise Conflict("action-not-allowed", region_id=order.region_id, state="dropped")

    def _carry_out(self, order: Order) -> None:
        self._must_take(order)
        before = self._picture(order.region_id)
        match order:
            case CreateRegion():
                self._create(order)
            case OpenRegion():
                self._open(order)
            case CloseRegion():
                self.serving.pop(order.region_id, None)
            case DropRegion():
                self.serving.pop(order.region_id, None)
                self.tombstones.add(order.region_id)
                self.storage.folders.pop(order.root, None)
            case SetSchema():
                self._set_schema(order)
            case AdoptFiles():
                self._adopt(order)
            case IngestFiles():
                self._ingest(order)
            case DiscardRoot():
                self._discard(order)
        if self._picture(order.region_id) != before:
            self.effects.append(f"{order.op} {order.region_id} {order.epoch}")

    def _picture(self, region_id: str) -> tuple[object, ...]:
        serving = self.serving.get(region_id)
        at = serving and (serving.epoch, serving.root)
        folders = {root: folder.copied() for root, folder in self.storage.folders.items()}
        return (at, region_id in self.tombstones, folders)

    def _create(self, order: CreateRegion) -> None:
        serving = self._not_above(order)
        if serving is not None and serving.epoch == order.epoch:
            return
        for root in order.replaces:
            if root in self.storage.folders:
                self.storage.read(root).raise_fence(order.epoch, order.root)
        made = Folder(fence=order.epoch, epoch=order.epoch)
        folder = self.storage.folders.setdefault(order.root, made)
        folder.set_schema(order.schema_version, order.schema_floor, frozenset(), order.columns)
        self.serving[order.region_id] = Serving(order.epoch, order.root)

    def _open(self, order: OpenRegion) -> None:
        """Fences first, in every root it will read; then the first manifest of its own root."""
        serving = self._not_above(order)
        if serving is not None and serving.epoch == order.epoch:
            self._die_at(Opening.ANNOUNCED)
            self._tell(order)
            return
        self._die_at(Opening.ASKED)
        inherits = [root for root in order.borrows if root not in order.unannounced]
        borrowed = {root: self.storage.read(root) for root in inherits}
        if not borrowed or order.root in self.storage.folders:
            borrowed[order.root] = self.storage.read(order.root)
        for folder in borrowed.values():
            folder.raise_fence(order.epoch, order.root)
        if is_volatile(order.engine):
            raise Unavailable("region-lost", region_id=order.region_id)
        self._die_at(Opening.FENCED)
        _refuse_lost_leaders(order, borrowed)
        if order.root not in self.storage.folders:
            inputs = {
                (root, name): rows
                for root, folder in borrowed.items()
                for name, rows in folder.files.items()
            }
            self.storage.folders[order.root] = Folder(fence=order.epoch, inputs=inputs)
        self.storage.folders[order.root].epoch = order.epoch
        self.serving[order.region_id] = Serving(order.epoch, order.root)
        self._die_at(Opening.MADE)
        for left in borrowed.values():
            folder = self.storage.read(order.root)
            known = (left.schema_version, left.schema_floor, left.dead_indexes, left.columns)
            folder.set_schema(*known)
            folder.marks |= left.marks
            folder.entries |= left.entries
        self._tell(order)

    def _die_at(self, stage: "Opening") -> None:
        if self.dies_at is stage:
            self.die()
            raise Unknown(what="node", name=self.node_id)

    def _not_above(self, order: CreateRegion | OpenRegion) -> Serving | None:
        serving = self.serving.get(order.region_id)
        if serving is not None and serving.epoch > order.epoch:
            raise Conflict("stale-epoch", epoch=order.epoch, current_epoch=serving.epoch)
        return serving

    def _tell(self, order: OpenRegion | SetSchema) -> Folder:
        folder = self._folder_at(order)
        dead = frozenset(order.dead_indexes)
        folder.set_schema(order.schema_version, order.schema_floor, dead, order.columns)
        return folder

    def _set_schema(self, order: SetSchema) -> None:
        folder = self._tell(order)
        for name in order.close_marks:
            folder.marks.pop(name, None)
        if order.close_marks and not folder.marks:
            folder.attempts.clear()
        if order.mark is not None:
            folder.marks.setdefault(order.mark, len(folder.rows) + order.reserves_version)

    def _floor(self, order: Order) -> int | None:
        """Returns the floor for the answer to an order that was done."""
        if not isinstance(order, SetSchema):
            return None
        folder = self._folder_at(order)
        return folder.floor_version if order.mark is None else folder.marks[order.mark]

    def _adopt(self, order: AdoptFiles) -> None:
        folder = self._folder_at(order)
        if order.procedure in folder.adopted:
            return
        written = folder.attempts.get(order.attempt, {})
        named = {file.name: written.get(file.name) for file in order.files}
        if None in named.values() or named.keys() != written.keys():
            raise Refused("invalid-request", attempt=order.attempt, reason="not those files")
        folder.files |= written
        folder.inputs, folder.attempts = {}, {}
        folder.adopted.append(order.procedure)

    def _ingest(self, order: IngestFiles) -> None:
        folder, name = self._folder_at(order), f"{order.procedure}/{order.index}"
        if name in folder.adopted:
            return
        if order.mark not in folder.marks:
            raise Conflict("version-mismatch", mark=order.mark, reason="it is not open")
        if order.index in folder.dead_indexes:
            raise Refused("invalid-request", index=order.index, reason="the index was dropped")
        written = folder.attempts.get(order.attempt, {})
        named = {file.name: written.get(file.name) for file in order.files}
        if None in named.values():
            raise Refused("invalid-request", attempt=order.attempt, reason="not those files")
        if order.prepares:
            return
        if order.index == ROWS:
            folder.take_rows({one.name: written[one.name] for one in order.files})
            folder.adopted.append(name)
            return
        entries: Rows = frozenset().union(*(written[one.name] for one in order.files))
        if order.unique_columns and (found := offenders(order, entries, folder.rows)):
            raise Refused("unique-violation", **found.model_dump())
        folder.entries[order.index] = folder.entries.get(order.index, frozenset()) | entries
        folder.attempts.pop(order.attempt, None)
        folder.adopted.append(name)

    def _discard(self, order: DiscardRoot) -> None:
        folder = self._folder_at(order)
        used = {root for root, _ in folder.inputs} | {self.serving[order.region_id].root}
        if order.root in used:
            raise Conflict("action-not-allowed", root=order.root, state="in use")
        self.storage.folders.pop(order.root, None)

    def _folder_at(self, order: Order) -> Folder:
        serving = self.serving.get(order.region_id)
        if serving is None:
            raise Unavailable("not-ready", region_id=order.region_id, reason="not open here")
        if serving.epoch != order.epoch:
            raise Conflict("stale-epoch", epoch=order.epoch, current_epoch=serving.epoch)
        return self.storage.read(serving.root)

    def borrowed(self, region_id: str) -> Borrowed:
        serving = self.serving.get(region_id)
        if serving is None:
            raise NotFound(what="region", name=region_id)
        inputs = self.storage.read(serving.root).inputs
        return Borrowed(
            region_id=region_id,
            epoch=serving.epoch,
            root=serving.root,
            columns=[],
            marks=[],
            files=[
                BorrowedFile(root=root, file=data_file(name, rows))
                for (root, name), rows in inputs.items()
                if name != LOG
            ],
            segments=[
                SealedSegment(root=root, name=name, bytes=len(rows), checksum="0" * 8)
                for (root, name), rows in inputs.items()
                if name == LOG
            ],
        )

    def snapshot(self, region_id: str, mark: str, *, whole: bool = False) -> Snapshot:
        serving = self.serving.get(region_id)
        if serving is None:
            raise NotFound(what="region", name=region_id)
        folder = self.storage.read(serving.root)
        if mark not in folder.marks:
            raise NotFound(what="mark", name=mark)
        own = {(serving.root, name): rows for name, rows in folder.files.items()}
        entries = folder.entries.items() if whole else ()
        return Snapshot(
            region_id=region_id,
            epoch=serving.epoch,
            root=serving.root,
            columns=list(folder.columns),
            mark=mark,
            version=folder.marks[mark],
            files=[
                BorrowedFile(root=root, file=data_file(name, rows))
                for (root, name), rows in (own | folder.inputs).items()
            ]
            + [
                BorrowedFile(root=serving.root, file=data_file(f"entries-{index}", held, index))
                for index, held in entries
            ],
        )


def _refuse_lost_leaders(order: OpenRegion, claimed: Mapping[str, Folder]) -> None:
    """As dataplane/region/engine/takeover.py: whoever raised a fence above the newest manifest,
    and has no root among those that are read, may have served from it.
    """
    newest = max(folder.epoch for folder in claimed.values())
    for folder in claimed.values():
        for epoch, root in folder.raised.items():
            if newest < epoch < order.epoch and root not in {*claimed, *order.unannounced}:
                raise Unavailable("region-lost", root=root, epoch=epoch)


def data_file(name: str, rows: Rows, family: int = 0) -> DataFile:
    return DataFile(
        name=name,
        rows=len(rows),
        bytes=len(rows),
        min_key="00",
        max_key="ff",
        min_version=0,
        max_version=1,
        checksum="0" * 8,
        footer_bytes=0,
        footer_checksum="0" * 8,
        row_checksum="0" * 16,
        family=family,
    )


def _result(order: Order, error: MetaError | None) -> OrderResult:
    shown = None if error is None else OrderError(code=error.code, facts=dict(error.facts))
    return OrderResult(number=order.number, region_id=order.region_id, error=shown)
