"""No row is acknowledged while its region has fewer copies in sync than its minimum
(docs/protocols.md P5.12), as the routes and the answers of clients show it from outside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keys.model.tables import RegionRoute, TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.kv import Watched
from keys.value import decode
from procedures.quorum import minimum_of
from tests.sim.checks.oracle import NEVER, Rows

HEARD_S_MAX = 25.0
"""The time after which a leader knows the set of a route: it may have stood still for 20 s."""


@dataclass
class MinimumGhost:
    """`written` is called with every revision (StoreGhost.listeners)."""

    now_s: Callable[[], float]
    wrong: Callable[[str], None]
    _infos: dict[int, TableInfo] = field(default_factory=dict)
    _routes: dict[int, TableRoute] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    """Region -> when it came to have too few copies in sync; absent: it has enough."""
    _below: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Region -> the times in which it had too few, that are over."""

    def written(self, entry: Watched) -> None:
        infos, routes = TableInfoKey.under(), TableRouteKey.under()
        for event in entry.events:
            if event.value is None:
                continue
            if infos[0] <= event.key < infos[1]:
                info = decode(TableInfo, event.value, key=event.key.decode())
                self._infos[info.table_id] = info
            elif routes[0] <= event.key < routes[1]:
                route = decode(TableRoute, event.value, key=event.key.decode())
                self._routes[route.table_id] = route
        for table_id, route in self._routes.items():
            for region in route.region_routes:
                self._note(self._infos[table_id], region)

    def _note(self, info: TableInfo, region: RegionRoute) -> None:
        is_below, name = len(region.in_sync) < minimum_of(info, region), region.region_id
        if is_below:
            self._since.setdefault(name, self.now_s())
        elif name in self._since:
            self._below.setdefault(name, []).append((self._since.pop(name), self.now_s()))

    def judge(self, table_id: int, rows: Rows, numbers: Mapping[int, int]) -> None:
        """*numbers*: of regions, by key."""
        for key, writes in rows.keys.items():
            region = str(table_id << 32 | numbers[key])
            below = [*self._below.get(region, ())]
            if region in self._since:
                below.append((self._since[region], NEVER))
            for written in writes:
                for began, ended in below:
                    is_within = began + HEARD_S_MAX <= written.began and written.ended <= ended
                    if written.is_sure and is_within:
                        where = f"key {key} of region {region}, written at {written.began:.3f} s"
                        self.wrong(f"acknowledged below the minimum: {where}")
