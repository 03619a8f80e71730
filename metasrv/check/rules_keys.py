"""Rules about single keys: they are ours, they can be read, and they say what their key says."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keys.commit.sequence import FIRST
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
    """Such a value is never rewritten by this version, and its procedure is parked."""
    for item in facts.items:
        if item.is_newer:
            yield CheckFault(item.name, item.error or "", "read it with the version that wrote it")


def values(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if item.key is not None and item.value is None and not item.is_newer:
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
    CandidateKey: lambda value: CandidateKey(value.server),
    NodeKey: lambda value: NodeKey(value.role, value.node_id),
    RemovedNodeKey: lambda value: RemovedNodeKey(value.node.role, value.node.node_id),
    HolderKey: lambda value: HolderKey(value.holder_id),
    SettingKey: lambda value: SettingKey(value.name),
}


def identities(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if item.value is None or item.key is None:
            continue
        says = _own_key(item.key, item.value)
        if says != str(item.key):
            yield CheckFault(item.name, f"the value says that it is {says}", f"that of {item.name}")


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
    keys: list[Key[Any]] = [ClusterKey(), *map(SequenceKey, FIRST)]
    for key in keys:
        if not facts.has(key):
            yield CheckFault(str(key), "missing", "what the first leader of the prefix wrote")


def leader(facts: CheckInput) -> Iterator[CheckFault]:
    """One key, so at most one leader; its lease ends its term."""
    key = LeaderKey()
    item, value = facts.by_name.get(str(key)), facts.get(key)
    if item is None or value is None:
        return
    if item.raw.lease == 0:
        yield CheckFault(
            item.name, "it stands under no lease, so it never ends", f"lease {value.lease}"
        )
    elif str(item.raw.lease) != value.lease:
        yield CheckFault(
            item.name, f"under lease {item.raw.lease}", f"under its own, {value.lease}"
        )


def candidates(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if isinstance(item.key, CandidateKey) and item.raw.lease == 0:
            yield CheckFault(item.name, "it stands under no lease", "gone when its server is")


def holders(facts: CheckInput) -> Iterator[CheckFault]:
    """A schema change would go on while the holder still uses the version before."""
    for item in facts.items:
        if isinstance(item.key, HolderKey) and item.raw.lease != 0:
            state = f"it stands under lease {item.raw.lease}, and may end early"
            yield CheckFault(item.name, state, "a key that ends by a decision alone")


def node_roots(facts: CheckInput) -> Iterator[CheckFault]:
    """Two nodes over one folder would take each other's regions for their own."""
    owners: dict[str, str] = {}
    for key, node in facts.of(NodeKey).items():
        first = owners.setdefault(node.root, str(key))
        if first != str(key):
            yield CheckFault(
                str(key), f"its root {node.root} is that of {first}", "a root of its own"
            )


def settings(facts: CheckInput) -> Iterator[CheckFault]:
    """The next leader could not read such a one, and would not lead."""
    for key, setting in facts.of(SettingKey).items():
        try:
            Tunables().changed(setting.name, setting.value)
        except NotFound:
            yield CheckFault(str(key), "no setting of this version", "one that this version lists")
        except Refused:
            yield CheckFault(str(key), json.dumps(setting.value), "a value of its type")


RULES = (
    CheckRule("key-family", 2, "every key belongs to a family and parses strictly", families),
    CheckRule(
        "value-newer",
        2,
        "a value of a newer format is named, and judged by no other rule",
        newer_formats,
        severity=Severity.WARNING,
    ),
    CheckRule("value-decodes", 2, "every value decodes, without unknown fields", values),
    CheckRule("value-identity", 2, "a value says the ids and names that its key says", identities),
    CheckRule("cluster-bootstrapped", 2, "a cluster has its identity and its sequences", bootstrap),
    CheckRule("leader-leased", 3, "the election key stands under its leader's lease", leader),
    CheckRule("candidate-leased", 3, "a candidate stands under a lease", candidates),
    CheckRule("holder-plain", 5, "a registered holder stands under no lease of the store", holders),
    CheckRule("setting-valid", 2, "every setting is known, and of its type", settings),
    CheckRule("node-root", 6, "no two nodes have one storage root", node_roots),
)
