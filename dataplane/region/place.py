"""The place and the bounds of a region, which are handed to it instead of globals."""

import posixpath
from dataclasses import dataclass, field

from dataplane.region.disk.disk import Disk
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileSource
from dataplane.region.format.columns import ColumnDef, ordered
from dataplane.region.format.schema import RegionSchema
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.memory.statements import StatementWindow
from metasrv_base.clock import Clock


@dataclass(frozen=True, slots=True)
class RegionLimits:
    """Bounds of one region's memory, and of how long rows stay in the log alone."""

    memtable_bytes: int = 32 << 20
    """Flushed above it. At twice this, while a flush is under way, writers wait for it."""
    flush_age_ms: int = 300_000
    """Flushed when its oldest row is older, so that a restart replays little."""
    statements: StatementWindow = field(default_factory=StatementWindow)
    """The time for which applied statements are remembered."""


@dataclass(frozen=True, slots=True)
class RegionPlace:
    """`root` is absolute, and the same text wherever orders name it."""

    disk: Disk
    root: str
    clock: Clock
    limits: RegionLimits = field(default_factory=RegionLimits)
    cache: BlockCache = field(default_factory=BlockCache)
    """Shared by the regions of a node."""
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    """Likewise."""

    def __post_init__(self) -> None:
        assert posixpath.isabs(self.root), "a root is absolute"
        assert posixpath.normpath(self.root) == self.root, "a root has one spelling"

    @property
    def files(self) -> FileSource:
        return FileSource(self.disk, self.root, self.cache)


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """The part of an order to open a region that concerns its files."""

    region_id: int
    epoch: int
    borrows: tuple[str, ...] = ()
    """Roots of dead leaders, newest last."""
    columns: tuple[ColumnDef, ...] | None = None
    """The columns; None for those that the manifest has."""
    schema_version: int = 0
    schema_floor: int = 0
    indexes: frozenset[int] = frozenset()
    dead_indexes: frozenset[int] = frozenset()
    unannounced: frozenset[str] = frozenset()
    """The roots of `borrows` whose openers acknowledged nothing."""

    @property
    def inherits(self) -> tuple[str, ...]:
        """The borrowed roots in which something may have been acknowledged, newest last."""
        return tuple(root for root in self.borrows if root not in self.unannounced)

    @property
    def schema(self) -> RegionSchema:
        """The schema of the order, to be joined to that of the manifest."""
        return RegionSchema(
            self.schema_version,
            self.schema_floor,
            None if self.columns is None else ordered(self.columns),
            self.indexes,
            self.dead_indexes,
        )
