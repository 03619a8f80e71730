"""A catalog put together from its tables at once, without the versions in between. Pure.

All that a catalog derives from its tables is made in one pass: table by table it would cost ten
times as much, for each table makes new maps of everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import TypeVar

from immutables import Map

from keys.catalog.catalog import Catalog, CatalogTable, SchemaName
from keys.catalog.ordered import Names
from keys.model.tables import RegionState
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.errors import Corrupt

J = TypeVar("J")
K = TypeVar("K")
V = TypeVar("V")
SORTED_AT_ONCE = 8_192  # names of a turn: 3 ms


@dataclass(slots=True)
class _Derived:
    """Maps that a catalog derives from its tables, as far as those have been met."""

    names: dict[SchemaName, dict[str, int]] = field(default_factory=dict)
    freed: dict[int, None] = field(default_factory=dict)
    gone: dict[SchemaName, dict[int, str]] = field(default_factory=dict)
    nodes: dict[str, dict[int, int]] = field(default_factory=dict)
    states: dict[RegionState, int] = field(default_factory=dict)

    def meet(self, table: CatalogTable) -> None:
        info, table_id = table.info, table.info.table_id
        schema = (info.catalog, info.schema_name)
        if table.dropped_at_ms is not None:
            self.gone.setdefault(schema, {})[table_id] = info.name
            return
        if info.dropping is not None:
            self.freed[table_id] = None
        else:
            names = self.names.setdefault(schema, {})
            if names.setdefault(info.name, table_id) != table_id:
                raise Corrupt(name=info.full_name, holder=names[info.name], other=table_id)
        for region in table.route.region_routes:
            self.states[region.state] = self.states.get(region.state, 0) + 1
            for node in (region.leader, *region.followers):
                held = self.nodes.setdefault(node, {})
                held[table_id] = held.get(table_id, 0) + 1


def assembled(namespaces: Catalog, tables: Mapping[int, CatalogTable]) -> Turns[Catalog]:
    """*namespaces*: the catalog but for its tables. Raises Corrupt where two tables have a name, or
    a name no schema."""
    derived = _Derived()
    for some in slices(tables.values()):
        for table in some:
            derived.meet(table)
        yield
    for schema in derived.names:
        if schema not in namespaces.schemas and schema not in namespaces.leaving:
            raise Corrupt(reason="tables of a schema that does not exist", schema=schema)
    ordered = {}
    for schema, names in derived.names.items():
        ordered[schema] = yield from _in_order(names)
    led = {node: sum(held.values()) for node, held in derived.nodes.items()}
    return replace(
        namespaces,
        tables=(yield from _map_of(tables)),
        names=(yield from _maps_of(derived.names)),
        ordered=Map(ordered),
        freed=(yield from _map_of(derived.freed)),
        gone=(yield from _maps_of(derived.gone)),
        nodes=(yield from _maps_of(derived.nodes)),
        led=Map(led),
        states=Map(derived.states),
    )


def _in_order(names: Iterable[str]) -> Turns[Names]:
    sorted_parts = []
    for some in slices(names, SORTED_AT_ONCE):
        sorted_parts.append(sorted(some))
        yield
    ordered: list[str] = []
    for some in slices(merge(*sorted_parts)):
        ordered += some
        yield
    return Names.of(ordered)


def _maps_of(maps: Mapping[J, Mapping[K, V]]) -> Turns[Map[J, Map[K, V]]]:
    made = {}
    for key, items in maps.items():
        made[key] = yield from _map_of(items)
    return Map(made)


def _map_of(items: Mapping[K, V]) -> Turns[Map[K, V]]:
    filled = Map[K, V]().mutate()
    for some in slices(items.items()):
        filled.update(some)
        yield
    return filled.finish()
