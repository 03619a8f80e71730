"""All key families: which one a stored key belongs to, and the page that describes them."""

from dataclasses import dataclass
from typing import Any

from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.cluster import (
    CandidateKey,
    ClusterKey,
    LeaderKey,
    NodeKey,
    RemovedNodeKey,
    RestoreMarkKey,
    SequenceKey,
    SettingKey,
)
from keys.model.holders import HolderKey
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.placing.placements import PlacedTableKey, PlacementKey
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceKey
from keys.model.poison import PoisonKey
from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.snapshot.pins import CatalogPinKey, RevisionPinKey
from keys.model.snapshot.snapshots import SnapshotPartKey, SnapshotVersionKey
from keys.model.staging.parts import BatchPartKey, LargeUpdateKey
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableNameKey, TableRouteKey
from metasrv_base.errors import Corrupt


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """One kind of key. `written_by`: which changes put or delete it, for people."""

    key: type[Key[Any]]
    written_by: str

    @property
    def head(self) -> bytes:
        """The prefix of every key of the family; the whole key if it has no parts."""
        return self.key.template.partition("{")[0].encode()

    @property
    def name(self) -> str:
        """Name of the family and of its golden file."""
        return self.key.__name__.removesuffix("Key")

    def claims(self, raw: bytes) -> bool:
        """A padded number begins with a digit: a word in its place is of another family."""
        literal, _, part = self.key.template.partition("{")
        if not part:
            return raw == self.head
        is_numbered = part.partition("}")[0].endswith(":020")
        behind = raw[len(literal) : len(literal) + 1]
        return raw.startswith(self.head) and (not is_numbered or behind.isdigit())


FAMILIES: tuple[KeyFamily, ...] = (
    KeyFamily(TableInfoKey, "create, alter, rename, drop and undrop of a table"),
    KeyFamily(TableRouteKey, "create, drop, undrop and truncate of a table; failover"),
    KeyFamily(DatanodeTableKey, "every change of a route, in the same transaction"),
    KeyFamily(TableNameKey, "create, rename, drop and undrop of a table"),
    KeyFamily(CatalogNameKey, "the bootstrap; create and drop of a catalog"),
    KeyFamily(SchemaNameKey, "the bootstrap; create and drop of a schema"),
    KeyFamily(PlacementKey, "the bootstrap; create, alter, rename and drop of a placement"),
    KeyFamily(TablespaceKey, "the bootstrap; every change of a tablespace; create of a catalog"),
    KeyFamily(PlacedTableKey, "every change of a table that uses a placement, with it"),
    KeyFamily(GroupedTableKey, "every change of a table in a tablespace, with it"),
    KeyFamily(RemovedTableInfoKey, "drop, undrop and purge of a table"),
    KeyFamily(RemovedTableRouteKey, "drop, undrop and purge of a table"),
    KeyFamily(RemovedTableNameKey, "drop, undrop and purge of a table"),
    KeyFamily(SequenceKey, "the bootstrap; every reservation of a block of ids"),
    KeyFamily(CatalogVersionKey, "every change of metadata"),
    KeyFamily(CatalogUpdateKey, "every change of metadata, once; deleted below the snapshots"),
    KeyFamily(LargeUpdateKey, "a change too large for one transaction, until its keys are written"),
    KeyFamily(BatchPartKey, "such a change, before it happens; deleted with its update of the log"),
    KeyFamily(SnapshotVersionKey, "the leader, when a snapshot is whole, or one goes"),
    KeyFamily(SnapshotPartKey, "the leader, part by part; deleted with the snapshot"),
    KeyFamily(CatalogPinKey, "users, through the API; deleted once it has expired"),
    KeyFamily(RevisionPinKey, "who reads at one revision, leader or not; deleted at its end"),
    KeyFamily(ProcedureKey, "submission; every step of a procedure; deleted by its last"),
    KeyFamily(ProcedureHistoryKey, "the last step of a procedure; deleted after retention"),
    KeyFamily(IdempotencyKey, "submission; deleted after retention"),
    KeyFamily(PoisonKey, "an undo that is given up; deleted by who clears it or tries again"),
    KeyFamily(LeaderKey, "the election, under the leader's lease"),
    KeyFamily(CandidateKey, "each metasrv, under its lease"),
    KeyFamily(NodeKey, "registration of a node; deleted when it is removed"),
    KeyFamily(RemovedNodeKey, "removal of a node; deleted when its id registers again"),
    KeyFamily(HolderKey, "registration and sign-off of a holder; its lease, when it has ended"),
    KeyFamily(ClusterKey, "the bootstrap, once; or a restore, once"),
    KeyFamily(RestoreMarkKey, "a restore, while it is under way"),
    KeyFamily(SettingKey, "operators, through the API"),
)


def family_of(raw: bytes) -> type[Key[Any]]:
    """Raises Corrupt for a key that none of ours could be. *raw* is relative to the prefix."""
    for family in FAMILIES:
        if family.claims(raw):
            return family.key
    raise Corrupt(raw=raw, reason="no family")


def parse_any(raw: bytes) -> Key[Any]:
    """The typed key. Raises Corrupt unless *raw* is exactly what we would write."""
    return family_of(raw).parse(raw)
