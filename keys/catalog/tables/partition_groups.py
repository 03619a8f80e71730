"""Partition groups: regions of one number of the tables in one tablespace (docs/decisions/0230)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from keys.model.tables import TableRoute

TABLES_LOOKED_AT = 64
"""Tables of a tablespace by whose routes a region is placed: a bound on the work, some 3 ms. A
group is a preference, and is where most of these are."""
Groups = Mapping[int, Mapping[str, int]]
"""Region number -> node -> regions of that group which it leads, or of which it has a copy."""


def groups_of(routes: Iterable[TableRoute]) -> Groups:
    """The groups that the first of *routes*, of tables of one tablespace, make."""
    groups: dict[int, Counter[str]] = {}
    for route in islice(routes, TABLES_LOOKED_AT):
        for region in route.region_routes:
            groups.setdefault(region.number, Counter())[region.leader] += 1
    return groups


def copy_groups_of(routes: Iterable[TableRoute]) -> Groups:
    """The same by all copies, the leaders' included."""
    groups: dict[int, Counter[str]] = {}
    for route in islice(routes, TABLES_LOOKED_AT):
        for region in route.region_routes:
            groups.setdefault(region.number, Counter()).update(region.nodes)
    return groups


def counts_of(groups: Groups) -> Counter[str]:
    """Node -> regions of all *groups* there."""
    counts = Counter[str]()
    for group in groups.values():
        counts.update(group)
    return counts
