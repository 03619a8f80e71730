"""Rules about single keys: they are known, can be decoded, and their values match them."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keys.commit.sequence import BOOTSTRAPPED
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
from keys.model.log import CatalogUpdateKey
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.snapshot.pins import CatalogPinKey
from keys.model.snapshot.snapshots import SnapshotPartKey
from keys.model.staging.parts import BatchPartKey, LargeUpdateKey
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableRouteKey
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, Severity
from metasrv.settings.tunables import Tunables
from metasrv_base.errors import NotFound, Refused


def families(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if item.key is None:
            yield CheckFault(
                item.name, "a key that metasrv never writes", "no such key (docs/keyspace.md)"
            )


def newer_formats(facts: CheckInput) -> Iterator[CheckFault]:
    """This program never rewrites such a value, and parks its procedure; other rules skip it."""
    for item in facts.items:
        if item.is_newer:
            yield CheckFault(item.name, item.error or "", "read it with the version that wrote it")


def values(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if item.key is not None and not item.is_readable and not item.is_newer:
            right = f"a {item.key.value_type.__name__} as docs/keyspace.md has it"
            yield CheckFault(item.name, item.error or "", right)


# What a value says of the parts of its own key.
_SAYS: Mapping[type[Key[Any]], Callable[[Any], Key[Any]]] = {
    TableInfoKey: lambda value: TableInfoKey(value.table_id),
    TableRouteKey: lambda value: TableRouteKey(value.table_id),
    CatalogNameKey: lambda value: CatalogNameKey(value.name),
    SchemaNameKey: lambda value: SchemaNameKey(value.catalog, value.name),
    RemovedTableInfoKey: lambda value: RemovedTableInfoKey(value.info.table_id),
    RemovedTableRouteKey: lambda value: RemovedTableRouteKey(value.route.table_id),
    CatalogUpdateKey: lambda value: CatalogUpdateKey(value.version),
    LargeUpdateKey: lambda value: LargeUpdateKey(value.version),
    BatchPartKey: lambda value: BatchPartKey(value.batch, value.part),
    CatalogPinKey: lambda value: CatalogPinKey(value.name),
    SnapshotPartKey: lambda value: SnapshotPartKey(value.version, value.part),
    CandidateKey: lambda value: CandidateKey(value.server),
    NodeKey: lambda value: NodeKey(value.role, value.node_id),
    RemovedNodeKey: lambda value: RemovedNodeKey(value.node.role, value.node.node_id),
    HolderKey: lambda value: HolderKey(value.holder_id),
    SettingKey: lambda value: SettingKey(value.name),
}


def identities(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if not item.is_readable or item.key is None:
            continue
        says = _own_key(item.key, item.value)
        if says != str(item.key):
            yield CheckFault(
                item.name, f"a value that belongs under {says}", f"a value of {item.name}"
            )


def _own_key(key: Key[Any], value: Any) -> str:
    """The key that the value belongs under, as far as it says. Raises nothing."""
    if isinstance(key, DatanodeTableKey | RemovedTableNameKey):
        return str(key).removesuffix(str(key.table_id)) + str(value.table_id)
    make = _SAYS.get(type(key))
    if make is None:
        return str(key)
    try:
        return str(make(value))
    except ValueError as error:
        return f"no key at all ({error})"


def bootstrap(facts: CheckInput) -> Iterator[CheckFault]:
    keys: list[Key[Any]] = [ClusterKey(), *map(SequenceKey, BOOTSTRAPPED)]
    for key in keys:
        if not facts.has(key):
            yield CheckFault(str(key), "missing", "written by the first leader of the prefix")


def leader(facts: CheckInput) -> Iterator[CheckFault]:
    """There is one such key, so at most one leader. The end of its lease ends its term."""
    key = LeaderKey()
    item, value = facts.by_name.get(str(key)), facts.get(key)
    if item is None or value is None:
        return
    if item.raw.lease == 0:
        yield CheckFault(item.name, "it has no lease, so it never expires", f"lease {value.lease}")
    elif str(item.raw.lease) != value.lease:
        yield CheckFault(
            item.name, f"lease {item.raw.lease}", f"lease {value.lease}, as its value says"
        )


def candidates(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if isinstance(item.key, CandidateKey) and item.raw.lease == 0:
            yield CheckFault(
                item.name, "it has no lease", "a lease, so that it ends with its server"
            )


def holders(facts: CheckInput) -> Iterator[CheckFault]:
    """A holder's key has no lease: a lease could expire while the holder still uses an old
    version."""
    for item in facts.items:
        if isinstance(item.key, HolderKey) and item.raw.lease != 0:
            state = f"it has lease {item.raw.lease}, and may expire early"
            yield CheckFault(item.name, state, "no lease: the leader alone ends a registration")


def node_roots(facts: CheckInput) -> Iterator[CheckFault]:
    """Two nodes with one folder would treat each other's regions as their own."""
    owners: dict[str, str] = {}
    for key, node in facts.of(NodeKey).items():
        first = owners.setdefault(node.root, str(key))
        if first != str(key):
            yield CheckFault(
                str(key), f"its root {node.root} is that of {first}", "a root of its own"
            )


def adoptions(facts: CheckInput) -> Iterator[CheckFault]:
    """Regions of a restored cluster are opened when its nodes have been adopted (P8)."""
    for key, node in facts.of(NodeKey).items():
        if node.restored_from is not None:
            state = f"it belongs to the cluster {node.restored_from}, of the backup"
            yield CheckFault(str(key), state, f"adopted: metasrv node adopt {node.node_id}")


def settings(facts: CheckInput) -> Iterator[CheckFault]:
    """A server that cannot read its settings does not lead."""
    for key, setting in facts.of(SettingKey).items():
        try:
            Tunables().changed(setting.name, setting.value)
        except NotFound:
            yield CheckFault(
                str(key), "unknown to this version", "a setting that this version lists"
            )
        except Refused:
            yield CheckFault(str(key), json.dumps(setting.value), "a value of its type")


RULES = (
    CheckRule("key-family", 2, "every key belongs to a known family and parses strictly", families),
    CheckRule(
        "value-newer",
        2,
        "no value has a newer format than this program",
        newer_formats,
        severity=Severity.WARNING,
    ),
    CheckRule("value-decodes", 2, "every value decodes, and has no unknown fields", values),
    CheckRule("value-identity", 2, "a value has the ids and names of its key", identities),
    CheckRule(
        "cluster-bootstrapped", 2, "the cluster has its identity and its id sequences", bootstrap
    ),
    CheckRule("leader-leased", 3, "the election key has its leader's lease", leader),
    CheckRule("candidate-leased", 3, "every candidate has a lease", candidates),
    CheckRule("holder-plain", 5, "no registered holder has a lease of the store", holders),
    CheckRule("setting-valid", 2, "every setting is known and has a valid value", settings),
    CheckRule(
        "node-adopted",
        6,
        "every node of a restored cluster is adopted",
        adoptions,
        severity=Severity.WARNING,
    ),
    CheckRule("node-root", 6, "no two nodes share a storage root", node_roots),
)
