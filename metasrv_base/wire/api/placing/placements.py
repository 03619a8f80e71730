"""Placements and tablespaces as clients see them: where and by what regions of tables are kept."""

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from metasrv_base.schema.scalars import PARTITIONS_MAX
from metasrv_base.wire.api.tables import REASON_CHARS_MAX, Identifier, NumberOfCopies
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

PROFILES_MAX = 16
CONDITIONS_MAX = 16
VALUES_MAX = 64
COMMENT_CHARS_MAX = 1_024
LABELS_MAX = 32
"""Labels of one node."""


def placement_etag(placement_id: int, version: int) -> str:
    """The ETag of a placement as defined: another one that later bears its name never has it."""
    return f'"p{placement_id}-{version}"'


class StorageProfileSpec(WireModel):
    """A region engine with options, under a name that tables give."""

    name: Identifier
    engine: str = Field(examples=["lsm"])
    """`lsm`, or `memory`, whose rows end with the process of their node."""
    options: dict[str, Int64] = Field(default_factory=dict)
    """Options of the engine; one that is left out is as the node was started."""


class LabelConditionSpec(WireModel):
    """A condition on one label of a node: either `equals` or `in`. A node without the label does
    not meet it."""

    model_config = ConfigDict(
        validate_by_name=False, validate_by_alias=True, serialize_by_alias=True
    )

    label: str = Field(examples=["disk"])
    equals: str | None = Field(default=None, examples=["ssd"])
    one_of: Listed[str] | None = Field(
        default=None, alias="in", min_length=1, max_length=VALUES_MAX
    )

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if (self.equals is None) == (self.one_of is None):
            raise ValueError("either `equals` or `in`")
        return self

    @property
    def values(self) -> tuple[str, ...]:
        return self.one_of if self.one_of is not None else (self.equals or "",)


class NodeFilterSpec(WireModel):
    """The nodes that may lead regions of the placement; empty: any."""

    zones: Listed[str] = Field(default=(), max_length=VALUES_MAX)
    """A node stands in one of them; empty: in any."""
    labels: Listed[LabelConditionSpec] = Field(default=(), max_length=CONDITIONS_MAX)
    """All hold."""


class PlacementShape(WireModel):
    """The properties of a placement that a client may choose."""

    name: Identifier
    replicas: PositiveInt64 = 1
    """Copies of each region of a table that names no number, the leader's included: at
    most 15."""
    min_in_sync: PositiveInt64 | None = None
    """Copies in sync, the leader's included, without which regions of these tables acknowledge no
    writes: at most `replicas`. Null: a majority of `replicas`."""
    partitions: int = Field(default=1, ge=1, le=PARTITIONS_MAX)
    """Regions of a table that says nothing of its partitions: by hash of its colocation columns, or
    of its primary key. It cannot be altered."""
    storage_profiles: Listed[StorageProfileSpec] = Field(
        default=(StorageProfileSpec(name="default", engine="lsm"),),
        min_length=1,
        max_length=PROFILES_MAX,
    )
    """The first is that of tables that name none."""
    node_filter: NodeFilterSpec = NodeFilterSpec()
    preferred_zones: Listed[str] = Field(default=(), max_length=VALUES_MAX, examples=[["eu-1"]])
    """Zones in which leaders are wanted, the best first; others come after them. A preference:
    where no node of theirs fits, another leads. Of the zones of `node_filter`, if it names some."""
    comment: str | None = Field(default=None, max_length=COMMENT_CHARS_MAX)


class PlacementSpec(PlacementShape):
    """A placement to create."""

    if_not_exists: bool = False
    """Whether an equal placement that exists already is a success."""


class PlacementDefinition(PlacementShape):
    """A placement as it is defined: the spec, and what the system gave it."""

    id: Int64
    """Never used again; a rename keeps it."""
    version: Int64
    """Rises at every change of the placement."""
    created_at: str
    """RFC 3339."""

    @property
    def etag(self) -> str:
        """The ETag of the placement at this version, for If-Match."""
        return placement_etag(self.id, self.version)


class PlacementBody(PlacementDefinition):
    """A placement as it is."""

    catalog_version: Int64


class PlacementList(WireModel):
    """A page of the placements, by name."""

    placements: Listed[PlacementBody]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class PlacementPatch(WireModel):
    """`PATCH /v1/placements/{name}`: what is not named stays."""

    replicas: PositiveInt64 | None = None
    """Tables that name no number get or lose copies."""
    min_in_sync: NumberOfCopies | None = None
    """`default`: a majority of `replicas`. Below a majority and below what it is, it needs a
    `reason`."""
    reason: str | None = Field(default=None, min_length=1, max_length=REASON_CHARS_MAX)
    """Reason of a lower `min_in_sync`; the log keeps it."""
    partitions: int | None = Field(default=None, ge=1, le=PARTITIONS_MAX)
    """Refused unless it is what it was."""
    storage_profiles: Listed[StorageProfileSpec] | None = Field(
        default=None, min_length=1, max_length=PROFILES_MAX
    )
    """All of them, in order. A profile that is kept must be as it was; one that a table uses cannot
    be left out."""
    node_filter: NodeFilterSpec | None = None
    """Counts for regions that are placed from now on; those that are there stay."""
    preferred_zones: Listed[str] | None = Field(default=None, max_length=VALUES_MAX)
    """All of them, the best first; empty: none. Regions with a copy in sync in a better zone get
    another leader, some at a time."""
    comment: str | None = Field(default=None, max_length=COMMENT_CHARS_MAX)
    """Null removes it."""
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where it does not exist, instead of 404."""


class PlacingRename(WireModel):
    """Another name for a placement or a tablespace; tables that use it stay as they are."""

    new_name: Identifier
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where it does not exist, instead of 404."""


class TablespaceSpec(WireModel):
    """A tablespace to create: regions of the same number of its tables go to the same node, where
    that can take them."""

    name: Identifier
    comment: str | None = Field(default=None, max_length=COMMENT_CHARS_MAX)
    if_not_exists: bool = False
    """Whether an equal tablespace that exists already is a success."""


class TablespacePatch(WireModel):
    """`PATCH .../tablespaces/{name}`."""

    comment: str | None = Field(max_length=COMMENT_CHARS_MAX)
    """Null removes it."""
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where it does not exist, instead of 404."""


class TablespaceDefinition(WireModel):
    """A tablespace as it is defined: the spec, and what the system gave it."""

    id: Int64
    """Never used again; a rename keeps it."""
    catalog: str
    name: str
    comment: str | None
    version: Int64
    """Rises at every change of the tablespace."""
    created_at: str
    """RFC 3339."""


class TablespaceBody(TablespaceDefinition):
    """A tablespace as it is."""

    catalog_version: Int64


class TablespaceList(WireModel):
    """A page of the tablespaces of a catalog, by name."""

    tablespaces: Listed[TablespaceBody]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""
