"""Datanodes in memory: regions, epochs, tombstones, and the order rules of P3 and P5.

Everything a real node does once and durably happens here at once; what a test makes unsure is the
way to it and back (tests/fakes/faults.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dataplane.region.format.families import ROWS
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, Snapshot
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DeleteQuarantined,
    DiscardRoot,
    DropRegion,
    HandOver,
    IngestFiles,
    OpenRegion,
    Order,
    OrderResult,
    QuarantineRoot,
    SetSchema,
)
from tests.fakes.datanodes.disk import Folder, Rows, Storage
from tests.fakes.datanodes.index_rows import offenders
from tests.fakes.datanodes.serving import (
    Executed,
    Opening,
    Serving,
    borrowed_by,
    data_file,
    refuse_lost_leaders,
    result_of,
    was_led_before,
)


@dataclass
class FakeNode:
    """One datanode."""

    node_id: str
    storage: Storage
    alive: bool = True
    silent: bool = False
    """Its heartbeats are heard, yet nobody reaches it."""
    refuses: dict[str, MetaError] = field(default_factory=dict)
    """Kind of order, or `prepare` -> what it is answered; `lead`: a hand-over of a region it
    leads."""
    dies_at: "Opening | None" = None
    """The stage in the opening of the next region at which the node dies; None: it does not die."""
    comes_back: bool = False
    """Its process is started again at once when it dies at that stage."""
    disk_free_bytes: int = 1 << 40
    term: int = 0
    serving: dict[str, Serving] = field(default_factory=dict)
    """Regions that it leads."""
    following: dict[str, Serving] = field(default_factory=dict)
    """Regions of which it has a copy that is open."""
    restarted: dict[str, Serving] = field(default_factory=dict)
    """Regions that this process led never, and a former one led at the epoch of the last order."""
    lost: dict[str, Serving] = field(default_factory=dict)
    """Regions whose files were not there at the last order to open them, or since."""
    fetches: dict[str, FetchBody] = field(default_factory=dict)
    """Regions of which a copy here fetches files now."""
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
        self.following.clear()
        self.restarted.clear()
        self.lost.clear()
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
            return result_of(order, Unknown(number=order.number))
        try:
            self._carry_out(order)
        except (Refused, Conflict) as error:
            result = result_of(order, error)
        except MetaError as error:
            return result_of(order, error)  # not an outcome: the same order may be tried again
        else:
            result = result_of(order, None).model_copy(update={"floor_version": self._floor(order)})
        self.executed[order.region_id] = Executed(place, result)
        return result

    def _must_take(self, order: Order) -> None:
        prepares = isinstance(order, IngestFiles) and order.prepares
        asked = "prepare" if prepares else order.op
        if asked == "hand-over" and order.region_id in self.serving and "lead" in self.refuses:
            raise self.refuses["lead"]
        if asked in self.refuses:
            raise self.refuses[asked]
        if order.region_id in self.tombstones and order.op in ("create", "open"):
            raise Conflict("action-not-allowed", region_id=order.region_id, state="dropped")

    def _carry_out(self, order: Order) -> None:
        self._must_take(order)
        before = self._picture(order.region_id)
        match order:
            case CreateRegion() | OpenRegion():
                self._serve(order)
            case CloseRegion():
                self._close(order)
            case DropRegion():
                self._close(order)
                self.tombstones.add(order.region_id)
                self.storage.folders.pop(order.root, None)
            case SetSchema():
                self._set_schema(order)
            case AdoptFiles():
                self._adopt(order)
            case IngestFiles():
                self._ingest(order)
            case DiscardRoot() | QuarantineRoot() | DeleteQuarantined():
                self._remove(order)
            case HandOver(phase="hold" | "resume"):
                self._folder_at(order)
                self.serving[order.region_id].hand_over(order)
        if self._picture(order.region_id) != before:
            self.effects.append(f"{order.op} {order.region_id} {order.epoch}")

    def _serve(self, order: CreateRegion | OpenRegion) -> None:
        self.lost.pop(order.region_id, None)
        try:
            self._bring_up(order)
        except Unavailable as error:
            if error.code == "region-lost":
                self.serving.pop(order.region_id, None)
                self.following.pop(order.region_id, None)
                self.lost[order.region_id] = Serving(order.epoch, order.root)
            raise

    def _bring_up(self, order: CreateRegion | OpenRegion) -> None:
        if order.role == "copy":
            self._follow(order)
            return
        if isinstance(order, CreateRegion):
            self._create(order)
        else:
            self._open(order)
        self._lead(order)

    def _close(self, order: CloseRegion | DropRegion) -> None:
        self.lost.pop(order.region_id, None)
        self.serving.pop(order.region_id, None)
        self.following.pop(order.region_id, None)

    def _follow(self, order: CreateRegion | OpenRegion) -> None:
        """Follows the leader of the highest epoch; it makes a root only by an order to create."""
        assert order.copies is not None
        current = self._not_above(order)
        told = (order.epoch, order.copies.version)
        if current is not None and (current.epoch, current.copies_version) >= told:
            return
        if isinstance(order, CreateRegion):
            self._fence(order)
            self.storage.folders.setdefault(order.root, Folder(fence=0))
        folder = self.storage.read(order.root)
        folder.fence = max(folder.fence, order.epoch)
        folder.set_schema(order.schema_version, order.schema_floor, frozenset(), order.columns)
        self.serving.pop(order.region_id, None)
        self.following[order.region_id] = Serving(order.epoch, order.root, order.copies.version)

    def _lead(self, order: CreateRegion | OpenRegion) -> None:
        """It is no copy any more; the newest copies that it was told of count."""
        self.following.pop(order.region_id, None)
        if order.copies is not None:
            self.serving[order.region_id].tell(order.copies)

    def _picture(self, region_id: str) -> tuple[object, ...]:
        serving = self.serving.get(region_id)
        at = serving and (serving.epoch, serving.root)
        copy = self.following.get(region_id)
        if copy is not None:
            at = (copy.epoch, copy.root)
        folders = {root: folder.copied() for root, folder in self.storage.folders.items()}
        return (at, region_id in self.tombstones, folders, set(self.storage.quarantined))

    def _create(self, order: CreateRegion) -> None:
        serving = self._not_above(order)
        if serving is not None and serving.epoch == order.epoch:
            return
        self._fence(order)
        made = Folder(fence=order.epoch, epoch=order.epoch)
        folder = self.storage.folders.setdefault(order.root, made)
        folder.set_schema(order.schema_version, order.schema_floor, frozenset(), order.columns)
        self.serving[order.region_id] = Serving(order.epoch, order.root)

    def _fence(self, order: CreateRegion) -> None:
        for root in order.replaces:
            if root in self.storage.folders:
                self.storage.read(root).raise_fence(order.epoch, order.root)

    def _open(self, order: OpenRegion) -> None:
        """Fences first, in every root it will read; then the first manifest of its own root."""
        serving = self._not_above(order)
        if serving is not None and serving.epoch == order.epoch:
            self._die_at(Opening.ANNOUNCED)
            self._tell(order)
            return
        self.restarted.pop(order.region_id, None)
        if was_led_before(order, self.storage.folders.get(order.root)):
            self.restarted[order.region_id] = Serving(order.epoch, order.root)
            raise Unavailable("not-ready", region_id=order.region_id, reason="it started again")
        self._die_at(Opening.ASKED)
        self.storage.put_back(order.root, *order.borrows)
        inherits = [root for root in order.borrows if root not in order.unannounced]
        borrowed = {root: self.storage.read(root) for root in inherits}
        if not borrowed or order.root in self.storage.folders:
            borrowed[order.root] = self.storage.read(order.root)
        for folder in borrowed.values():
            folder.raise_fence(order.epoch, order.root)
        if is_volatile(order.engine):
            raise Unavailable("region-lost", region_id=order.region_id)
        self._die_at(Opening.FENCED)
        refuse_lost_leaders(order, borrowed)
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
            if self.comes_back:
                self.alive, self.dies_at = True, None
            raise Unknown(what="node", name=self.node_id)

    def _not_above(self, order: CreateRegion | OpenRegion) -> Serving | None:
        serving, copy = self.serving.get(order.region_id), self.following.get(order.region_id)
        for each in (serving, copy):
            if each is not None and each.epoch > order.epoch:
                raise Conflict("stale-epoch", epoch=order.epoch, current_epoch=each.epoch)
        return copy if order.role == "copy" else serving

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

    def _remove(self, order: DiscardRoot | QuarantineRoot | DeleteQuarantined) -> None:
        if not isinstance(order, DiscardRoot) or order.left:
            here = (self.serving.get(order.region_id), self.following.get(order.region_id))
            self.storage.remove(order, [each.root for each in here if each is not None])
            return
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
        return borrowed_by(region_id, serving, self.storage.read(serving.root))

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
