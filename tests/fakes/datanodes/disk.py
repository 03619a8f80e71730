"""Contents of the nodes' disks: region folders with a fence, files, attempts and a manifest."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.node.adoption import FoundRoot, Inventory, QuarantinedRoot
from metasrv_base.wire.node.orders import (
    DeleteQuarantined,
    DiscardRoot,
    QuarantineRoot,
    RegionColumn,
)

Rows = frozenset[str]


@dataclass
class Folder:
    """One root of a region. A file is its name and the rows in it."""

    fence: int
    epoch: int = 0
    """The epoch of the newest manifest; 0: the folder is as the test has made it."""
    raised: dict[int, str] = field(default_factory=dict)
    """Epoch -> root of the leader whose fence of it stands here."""
    files: dict[str, Rows] = field(default_factory=dict)
    """Own ones, by name."""
    inputs: dict[tuple[str, str], Rows] = field(default_factory=dict)
    """Borrowed ones, by root and name; only read."""
    attempts: dict[str, dict[str, Rows]] = field(default_factory=dict)
    adopted: list[str] = field(default_factory=list)
    """Procedures whose output the manifest names."""
    schema_version: int = 0
    schema_floor: int = 0
    floor_version: int = 0
    """The number of rows when the floor took hold."""
    dead_indexes: frozenset[int] = frozenset()
    marks: dict[str, int] = field(default_factory=dict)
    columns: tuple[RegionColumn, ...] = ()
    entries: dict[int, Rows] = field(default_factory=dict)
    """Entries that were ingested, by index: as `index_rows.backfilled`."""
    error: str | None = None
    """The reason for which an inventory cannot say what its manifest names."""

    def copied(self) -> "Folder":
        """Returns a copy of its contents; later changes reach only one of the two."""
        return replace(
            self,
            raised=dict(self.raised),
            files=dict(self.files),
            inputs=dict(self.inputs),
            attempts={attempt: dict(files) for attempt, files in self.attempts.items()},
            adopted=list(self.adopted),
            marks=dict(self.marks),
            entries=dict(self.entries),
        )

    def set_schema(
        self, version: int, floor: int, dead: frozenset[int], columns: Sequence[RegionColumn]
    ) -> None:
        if version >= self.schema_version:
            self.columns = tuple(columns)
        self.entries = {index: held for index, held in self.entries.items() if index not in dead}
        if floor > self.schema_floor:
            self.schema_floor, self.floor_version = floor, len(self.rows)
        self.schema_version = max(self.schema_version, version)
        self.dead_indexes |= dead

    def take_change(self, leader: "Folder") -> None:
        """Schema, floor, marks and files of the leader, as dataplane/region/log/logged_change.py.
        A copy that lacks a file of before has been sent its log, and has it now."""
        self.set_schema(
            leader.schema_version, leader.schema_floor, leader.dead_indexes, leader.columns
        )
        self.marks = dict(leader.marks)
        self.files |= leader.files
        self.entries, self.adopted = dict(leader.entries), list(leader.adopted)

    def take_rows(self, brought: dict[str, Rows]) -> None:
        """In place of those that have their keys."""
        keys = {_key(row) for rows in brought.values() for row in rows}

        def kept(rows: Rows) -> Rows:
            return frozenset(row for row in rows if _key(row) not in keys)

        self.files = {name: kept(rows) for name, rows in self.files.items()} | brought
        self.inputs = {at: kept(rows) for at, rows in self.inputs.items()}

    def raise_fence(self, epoch: int, root: str) -> None:
        """For a leader that lives in *root*. Raises Conflict("stale-epoch") behind a higher one."""
        if self.fence > epoch:
            raise Conflict("stale-epoch", epoch=epoch, current_epoch=self.fence)
        self.fence = epoch
        self.raised[epoch] = root

    @property
    def rows(self) -> Rows:
        return frozenset().union(*self.files.values(), *self.inputs.values())


def _key(row: str) -> str:
    return row.partition("=")[0]


def _described(region_id: str, root: str, folder: Folder) -> FoundRoot:
    return FoundRoot(
        region_id=region_id,
        root=root,
        fence_epoch=folder.fence,
        fence_opening=1,
        fenced_ms=0,
        opener=folder.raised.get(folder.fence, root),
        manifest_epoch=folder.epoch or None,
        borrows=sorted({held for held, _ in folder.inputs}),
        error=folder.error,
    )


@dataclass
class Storage:
    """The disks of all nodes: a node that died leaves its folders behind (docs/protocols.md P5)."""

    folders: dict[str, Folder] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Folders that cannot be read: the `region-lost` switch."""

    quarantined: dict[tuple[str, int], Folder] = field(default_factory=dict)
    """Folders in quarantine, by the root that they were and the time."""

    def remove(
        self, order: DiscardRoot | QuarantineRoot | DeleteQuarantined, used: Collection[str]
    ) -> None:
        """Raises Conflict for a folder that is *used*, or has another fence than was judged."""
        if isinstance(order, DeleteQuarantined):
            self.quarantined.pop((order.root, order.at_ms), None)
            return
        if order.root in used:
            raise Conflict("action-not-allowed", root=order.root, state="in use")
        folder = self.folders.get(order.root)
        if folder is not None and isinstance(order, QuarantineRoot):
            if folder.fence != order.fence_epoch:
                raise Conflict("stale-epoch", root=order.root)
            self.quarantined[order.root, order.at_ms] = folder
        self.folders.pop(order.root, None)

    def put_back(self, *roots: str) -> None:
        for root, at_ms in sorted(self.quarantined):
            if root in roots and root not in self.folders:
                self.folders[root] = self.quarantined.pop((root, at_ms))

    def inventory(self, node_id: str, below: str, region_id: str) -> Inventory:
        """The folders below *below* that are named for a region."""

        def is_of(root: str) -> bool:
            return root.startswith(below) and root.rpartition("/")[2].startswith(f"{region_id}-")

        return Inventory(
            node_id=node_id,
            cluster_id=None,
            roots=[
                _described(region_id, root, self.folders[root])
                for root in sorted(self.folders)
                if is_of(root)
            ],
            dropped=[],
            quarantined=[
                QuarantinedRoot(
                    folder=_described(region_id, root, folder),
                    path=f"{root}@{at_ms}",
                    at_ms=at_ms,
                    bytes=1,
                )
                for (root, at_ms), folder in sorted(self.quarantined.items())
                if is_of(root)
            ],
        )

    def read(self, root: str) -> Folder:
        """Raises Unavailable("region-lost") where there is nothing to read."""
        if root in self.lost or root not in self.folders:
            raise Unavailable("region-lost", root=root)
        return self.folders[root]
