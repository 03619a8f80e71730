"""The four kinds of key that make a table: what it is, where it is, who holds it, its name."""

from collections.abc import Iterable
from functools import partial
from operator import attrgetter, is_, not_
from typing import Any, ClassVar, Literal

from pydantic import Field

from keys.key import Key
from keys.value import StoredModel, StoredPart, is_none
from metasrv_base.elements.states import ElementState
from metasrv_base.engines import LSM, is_volatile
from metasrv_base.schema.partition import PartitionRule
from metasrv_base.values.frozen import frozen
from metasrv_base.values.value_enum import ValueEnum


class OriginColumnRecord(StoredPart):
    """A column that another one of another type has replaced."""

    id: int
    type: str


class Column(StoredPart):
    id: int
    """Permanent, never reused in this table; Parquet files carry it as `field_id`."""
    name: str
    type: str
    nullable: bool
    default: Any = None
    """JSON form of what a new row has that does not name the column; None: null."""
    origin_default: Any = None
    """JSON form of what a row reads as that was written without the column; None: null. Fixed when
    the column is asked for: `default` may change later, what old rows say may not."""
    origin_columns: tuple[OriginColumnRecord, ...] = ()
    """Columns that it has replaced, the last of them first. A row that was written without it reads
    as the first of these that it was written with, converted from each type to the next; as the
    origin default if with none (docs/decisions/0097)."""
    replaces: int | None = None
    """Id of the column in whose place it comes; None once that is gone."""
    replaced_by: int | None = None
    """Id of the column that comes in its place."""
    state: ElementState = ElementState.PUBLIC


class Index(StoredPart):
    id: int
    """Permanent, never reused in this table: the family of its entries in every region, from 1."""
    name: str
    columns: tuple[int, ...]
    """Column ids, in the order of the index."""
    unique: bool
    state: ElementState = ElementState.PUBLIC


class ConstraintKind(ValueEnum):
    NOT_NULL = "not-null"
    CHECK = "check"
    UNIQUE = "unique"


class Constraint(StoredPart):
    """A condition that rows must satisfy. NOT NULL is a constraint only while it is added or
    dropped: once it holds, `Column.nullable` records it."""

    id: int
    """Permanent, never reused in this table."""
    name: str
    kind: ConstraintKind
    columns: tuple[int, ...]
    """Column ids."""
    expression: str | None = None
    """Expression of a check, with columns by id (metasrv_base/expressions/text.py)."""
    holds: bool = True
    """Whether every row is known to satisfy it; if not, only those that were written since it is
    enforced."""
    state: ElementState = ElementState.PUBLIC


OwnCopies = Literal["replicas", "min_in_sync"]
COPY_NUMBERS_FORMAT = 3  # of a TableInfo with `min_in_sync` or `own_copies`


class TableInfo(StoredModel):
    """Definition of a table. Every change compares and replaces the whole value.

    Format 2 has a field from `placement_id` on, format 3 one from `min_in_sync` on; a table without
    such a field is written in the format before.
    """

    newest_format: ClassVar[int] = COPY_NUMBERS_FORMAT

    table_id: int
    catalog: str
    schema_name: str = Field(alias="schema")
    name: str
    version: int
    """Rises by one at every change of this value; the ETag shows it."""
    schema_version: int
    """Rises by one per published transition of an element; batches carry it (docs/protocols.md
    P6)."""
    schema_floor: int
    """The oldest schema version that regions still take."""
    columns: tuple[Column, ...]
    """Columns in declared order; those that are not public too."""
    next_column_id: int
    primary_key: tuple[int, ...]
    """Column ids."""
    partition: PartitionRule
    """Over column ids; says in which region number a row lives."""
    options: dict[str, str]
    replicas: int
    """Copies of each region, the leader's included: the table's own number, or its placement's."""
    created_at_ms: int
    indexes: tuple[Index, ...] = ()
    next_index_id: int = 1
    """Ids below it that no index has are dead: no entry is ever written under them again."""
    constraints: tuple[Constraint, ...] = ()
    next_constraint_id: int = 1
    engine: str = Field(default=LSM, exclude_if=lambda engine: engine == LSM)
    """The engine of its regions, which never changes."""
    engine_options: dict[str, int] = Field(
        default_factory=dict, exclude_if=lambda options: not options
    )
    """Options of the engine, by name (metasrv_base/engines.py)."""
    state: ElementState = ElementState.PUBLIC
    """State of the table itself. Write-only: a drop has begun and new statements do not find the
    table; transactions that know it continue."""
    dropping: str | None = Field(default=None, exclude_if=partial(is_, None))
    """Id of the batch that has dropped it: another table may bear its name since, and its schema
    may be gone. It is hidden, and removed once no statement uses it."""
    placement_id: int | None = Field(default=None, exclude_if=is_none)
    """The placement; None for the placement `default`."""
    storage_profile: str | None = Field(default=None, exclude_if=is_none)
    """A profile of its placement. None: that of the name `default`, of the placement `default`."""
    tablespace_id: int | None = Field(default=None, exclude_if=is_none)
    """The tablespace; None for the tablespace `default` of its catalog."""
    colocation: tuple[int, ...] = Field(default=(), exclude_if=not_)
    """Ids of columns of the primary key: rows that are alike in them are in one region. Empty: they
    were not named."""
    min_in_sync: int | None = Field(default=None, exclude_if=is_none)
    """Copies in sync, the leader's included, without which a region acknowledges nothing. None: a
    majority of `replicas`."""
    own_copies: tuple[OwnCopies, ...] = Field(default=(), exclude_if=not_)
    """The numbers that the table itself names, of `replicas` and `min_in_sync`, in this order. The
    others follow its placement."""

    @property
    def is_hidden(self) -> bool:
        return self.state is not ElementState.PUBLIC

    @property
    def is_volatile(self) -> bool:
        """Whether the rows of a region end with the process that serves it."""
        return is_volatile(self.engine)

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.{self.schema_name}.{self.name}"

    @property
    def public_columns(self) -> tuple[Column, ...]:
        """Columns visible to users."""
        return tuple(column for column in self.columns if column.state is ElementState.PUBLIC)


@frozen
class TableInfoKey(Key[TableInfo]):
    template: ClassVar[str] = "__table_info/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = TableInfo

    table_id: int


class RegionState(ValueEnum):
    OPENING = "opening"
    """The route names a new leader that has not yet said that it serves."""
    OPEN = "open"
    LOST = "lost"
    """Its storage cannot be read. Never replaced by an empty region."""


class CopyRole(ValueEnum):
    """Standing of a copy of a region beside its leader (docs/protocols.md P5.8)."""

    IN_SYNC = "in-sync"
    """The copy has every acknowledged row, and may be promoted."""
    LEARNER = "learner"
    """The copy is sent everything and counts for nothing."""


class RegionCopy(StoredPart):
    """One copy of a region, other than the leader's. A copy is a root: another disk of its node is
    another copy."""

    node: str
    root: str
    """Folder of its files, on that node's storage."""
    role: CopyRole
    eligible_epoch: int | None = Field(default=None, exclude_if=is_none)
    """The epoch at which it left a set that then had fewer than the minimum: a learner that may
    lead, as long as the epoch is the same (docs/protocols.md P5.12). None: it may not."""


_NODE = attrgetter("node")


class RegionRoute(StoredPart):
    """Location of one region. `epoch` rises at every change of leader and is never reused
    (docs/protocols.md P3)."""

    region_id: str
    """table_id << 32 | number, decimal."""
    leader: str
    followers: tuple[str, ...] = ()
    """Always empty: `copies` names the copies. The field is kept for older programs."""
    epoch: int
    state: RegionState
    root: str
    """Folder of this region's files, on the leader's storage."""
    announced: bool
    """Whether the region was ever said to be open there; if not, nobody was granted a lease on it,
    and so nothing in that root was acknowledged."""
    borrows: tuple[str, ...] = ()
    """Roots of leaders that are gone; oldest first. Acknowledged rows lie in those of them that
    were announced (docs/protocols.md P5)."""
    unannounced: tuple[str, ...] = ()
    """Roots in `borrows` that the route never announced. They hold no acknowledged rows: a node
    that opens the region skips them and the fences that their openers raised."""
    unverified: bool = Field(default=False, exclude_if=not_)
    """Restored, and not found at any node yet: only an adoption opens it (docs/protocols.md P8)."""
    copies: tuple[RegionCopy, ...] = Field(default=(), exclude_if=not_)
    """All copies but the leader's, at most one on a node. Not stored if there are none."""
    copies_version: int = Field(default=0, exclude_if=not_)
    """Rises by one with every change of `copies`, at any epoch, and never falls: nodes keep the
    newest copies that they were told of. 0: it never had more than one."""
    min_in_sync: int | None = Field(default=None, exclude_if=is_none)
    """The minimum before `replicas` of the table was raised. It counts until as many copies are in
    sync as the table requires now. None: the table's counts."""

    @property
    def number(self) -> int:
        return int(self.region_id) & 0xFFFFFFFF

    @property
    def other_nodes(self) -> tuple[str, ...]:
        """Nodes of all copies but the leader's."""
        return tuple(map(_NODE, self.copies))

    @property
    def needs_copies_format(self) -> bool:
        """Whether servers that know no copies cannot read it."""
        return bool(self.copies or self.copies_version)

    def with_copies(self, copies: tuple[RegionCopy, ...], **update: object) -> "RegionRoute":
        """The route with *copies*, of the next version if they are others; *update*: other fields
        that change with them. At another epoch no copy is eligible any more."""
        if update.get("epoch", self.epoch) != self.epoch:
            copies = tuple(map(_not_eligible, copies))
        version = self.copies_version + (copies != self.copies)
        changed = {**update, "copies": copies, "copies_version": version}
        return self.model_copy(update=changed)

    def without_eligible(self) -> "RegionRoute":
        """The route in which no learner may lead, of the next version if one might."""
        return self.with_copies(tuple(map(_not_eligible, self.copies)))

    def with_minimum(self, min_in_sync: int | None) -> "RegionRoute":
        """The route with that minimum, and the next version of the copies: nodes that know an
        earlier version are told the numbers of their table again."""
        update = {"min_in_sync": min_in_sync, "copies_version": self.copies_version + 1}
        return self.model_copy(update=update)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of all copies; the leader first."""
        return (self.leader, *self.other_nodes)

    @property
    def roots(self) -> tuple[str, ...]:
        """Roots of all copies; the leader's first."""
        return (self.root, *(copy.root for copy in self.copies))

    @property
    def in_sync(self) -> tuple[str, ...]:
        """Nodes that have every acknowledged row; the leader first."""
        others = (copy.node for copy in self.copies if copy.role is CopyRole.IN_SYNC)
        return (self.leader, *others)

    @property
    def eligible(self) -> tuple[RegionCopy, ...]:
        """Learners that have every acknowledged row, and may lead if the leader is alone in its set
        and is lost (docs/protocols.md P5.12)."""
        return tuple(copy for copy in self.copies if copy.eligible_epoch == self.epoch)

    def would_lead(self, root: str) -> bool:
        """Whether the copy in *root* may lead if the leader is lost, which is alone in its set:
        beside the leader's, only disks of such copies have every acknowledged row."""
        return len(self.in_sync) == 1 and any(copy.root == root for copy in self.eligible)


def _not_eligible(copy: RegionCopy) -> RegionCopy:
    if copy.eligible_epoch is None:
        return copy
    return copy.model_copy(update={"eligible_epoch": None})


COPIES_FORMAT = 2


def route_format(regions: Iterable[RegionRoute]) -> int:
    """The lowest format of a TableRoute of *regions*."""
    return COPIES_FORMAT if any(map(_NEEDS_FORMAT, regions)) else 1


_NEEDS_FORMAT = attrgetter("needs_copies_format")


class TableRoute(StoredModel):
    """Format 2 has copies beside the leaders'; a route without any is written in format 1."""

    newest_format: ClassVar[int] = COPIES_FORMAT

    table_id: int
    version: int
    region_routes: tuple[RegionRoute, ...]

    def with_regions(self, changed: tuple[RegionRoute, ...]) -> "TableRoute":
        """The next version, in which *changed* replace the routes of the same ids."""
        new = {region.region_id: region for region in changed}
        assert new.keys() <= {region.region_id for region in self.region_routes}
        routes = tuple(new.get(region.region_id, region) for region in self.region_routes)
        number = route_format(routes)
        update = {"format": number, "version": self.version + 1, "region_routes": routes}
        return self.model_copy(update=update)

    def numbers_by_node(self) -> dict[str, tuple[int, ...]]:
        """Node -> region numbers of which it has a copy: what its DatanodeTable must say."""
        numbers_of: dict[str, list[int]] = {}
        for region in self.region_routes:
            for node in region.nodes:
                numbers_of.setdefault(node, []).append(region.number)
        return {node: tuple(numbers) for node, numbers in numbers_of.items()}


@frozen
class TableRouteKey(Key[TableRoute]):
    template: ClassVar[str] = "__table_route/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = TableRoute

    table_id: int


class DatanodeTable(StoredModel):
    """The region numbers of one table on one node; rewritten with every change of the route."""

    table_id: int
    version: int
    """Version of the TableRoute from which it was made."""
    regions: tuple[int, ...]


@frozen
class DatanodeTableKey(Key[DatanodeTable]):
    template: ClassVar[str] = "__dn_table/{node}/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = DatanodeTable

    node: str
    table_id: int


class TableNameRecord(StoredModel):
    table_id: int


@frozen
class TableNameKey(Key[TableNameRecord]):
    template: ClassVar[str] = "__table_name/{catalog}/{schema}/{table}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = TableNameRecord

    catalog: str
    schema: str
    table: str
