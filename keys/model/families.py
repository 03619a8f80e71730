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
    SequenceKey,
    SettingKey,
)
from keys.model.holders import HolderKey
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.poison import PoisonKey
from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableNameKey, TableRouteKey
from metasrv_base.errors import Corrupt


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of key. `written_by`: which changes put or delete it, for people."""

    key: type[Key[Any]]
    written_by: str

    @property
    def head(self) -> bytes:
        """What every key of the family starts with; the whole key where it has no parts."""
        return self.key.template.partition("{")[0].encode()

    @property
    def name(self) -> str:
        """Of its golden file."""
        return self.key.__name__.removesuffix("Key")

    def claims(self, raw: bytes) -> bool:
        return raw.startswith(self.head) if "{" in self.key.template else raw == self.head


FAMILIES: tuple[Family, ...] = (
    Family(TableInfoKey, "create, alter, rename, drop and undrop of a table"),
    Family(TableRouteKey, "create, drop, undrop and truncate of a table; failover"),
    Family(DatanodeTableKey, "every change of a route, in the same transaction"),
    Family(TableNameKey, "create, rename, drop and undrop of a table"),
    Family(CatalogNameKey, "the bootstrap; create and drop of a catalog"),
    Family(SchemaNameKey, "the bootstrap; create and drop of a schema"),
    Family(RemovedTableInfoKey, "drop, undrop and purge of a table"),
    Family(RemovedTableRouteKey, "drop, undrop and purge of a table"),
    Family(RemovedTableNameKey, "drop, undrop and purge of a table"),
    Family(SequenceKey, "the bootstrap; every reservation of a block of ids"),
    Family(CatalogVersionKey, "every change of metadata"),
    Family(CatalogUpdateKey, "every change of metadata, once"),
    Family(ProcedureKey, "submission; every step of a procedure; deleted by its last"),
    Family(ProcedureHistoryKey, "the last step of a procedure; deleted after retention"),
    Family(IdempotencyKey, "submission; deleted after retention"),
    Family(PoisonKey, "an undo that is given up; deleted by who clears it or tries again"),
    Family(LeaderKey, "the election, under the leader's lease"),
    Family(CandidateKey, "each metasrv, under its lease"),
    Family(NodeKey, "registration of a node; deleted when it is removed"),
    Family(RemovedNodeKey, "removal of a node; deleted when its id registers again"),
    Family(HolderKey, "registration and sign-off of a holder; its lease, when it has ended"),
    Family(ClusterKey, "the bootstrap, once"),
    Family(SettingKey, "operators, through the API"),
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
