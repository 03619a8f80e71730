"""Legal ends of a life: conditions on keys, log, regions, rows and folders."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keys.model.records import ProcedureOutcome
from keys.model.tables import RegionState
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import Agreement
from tests.procedures.harness.tables import rows_of

TABLE, OTHER = 1024, 1025


@dataclass(frozen=True, slots=True)
class End:
    """Everything there is to look at when all is over."""

    cluster: Cluster
    agreement: Agreement
    outcome: ProcedureOutcome

    def tables(self) -> dict[str, Any]:
        """Living tables by name."""
        infos = self.agreement.family("__table_info").values()
        return {f"{info['schema']}.{info['name']}": info for info in infos}

    def regions(self, table_id: int) -> list[dict[str, Any]]:
        route = self.agreement.family("__table_route")[(str(table_id),)]
        found: list[dict[str, Any]] = route["region_routes"]
        return found

    def rest(self) -> list[str]:
        """Regions and folders on living nodes that no route, living or removed, knows."""
        wanted = [
            *self.agreement.family("__table_route").values(),
            *(v["route"] for v in self.agreement.family("__removed-__table_route").values()),
        ]
        regions = [region for route in wanted for region in route["region_routes"]]
        copies = [(region, copy) for region in regions for copy in region.get("copies", ())]
        roots = {region["root"] for region in regions} | {copy["root"] for _, copy in copies}
        known = {(r["leader"], r["region_id"], r["epoch"]) for r in regions}
        known |= {(copy["node"], r["region_id"], r["epoch"]) for r, copy in copies}
        nodes = self.cluster.plane.nodes.values()
        served = {
            (node.node_id, region_id, held.epoch)
            for node in nodes
            for region_id, held in (*node.serving.items(), *node.following.items())
        }
        folders = self.cluster.plane.storage.folders
        return [str(one) for one in sorted(served - known)] + sorted(folders.keys() - roots)


Check = Callable[[End], list[str]]


def effects(end: End, *wanted: str) -> list[str]:
    """Checks the effects of the procedure: each log entry once, and no other."""
    made = [ops for procedure, ops in end.agreement.effects.items() if procedure is not None]
    flat = [op for ops in made for op in ops]
    return [] if sorted(flat) == sorted(wanted) else [f"log entries {flat}, not {wanted}"]


def serving(end: End, table_id: int, *, epoch: int, rows: bool = True) -> list[str]:
    """Every region open on the leader that the route names, at *epoch*, with its rows."""
    return serving_at(end, table_id, [epoch] * len(end.regions(table_id)), rows=rows)


def serving_at(end: End, table_id: int, epochs: Sequence[int], *, rows: bool = True) -> list[str]:
    """As `serving`, each region at its own epoch."""
    wrong = []
    for region, epoch in zip(end.regions(table_id), epochs, strict=True):
        node = end.cluster.plane.nodes[region["leader"]]
        held = node.serving.get(region["region_id"])
        if region["state"] != "open" or region["borrows"] or region["epoch"] != epoch:
            wrong.append(f"route {region}, not open at {epoch}")
        if held is None or (held.epoch, held.root) != (region["epoch"], region["root"]):
            wrong.append(f"region {region['region_id']} on its node: {held}")
        found = end.cluster.plane.rows(region["region_id"])
        if rows and found != rows_of(region["region_id"]):
            wrong.append(f"region {region['region_id']} has rows {found}")
    return wrong


def nothing(end: End) -> list[str]:
    """Undone: as if it had never been asked for."""
    return [*effects(end), *(f"left: {one}" for one in end.rest())]


def no_rest(end: End) -> list[str]:
    return [f"left: {one}" for one in end.rest()]


def is_true(claim: bool, text: str) -> list[str]:
    return [] if claim else [text]


def knows_floor(end: End, table_id: int, *, above: int = 1) -> list[str]:
    """Regions that an order has opened, at a higher epoch than *above*, have the table's floor:
    nobody may tell them of it again (docs/protocols.md P6)."""
    floor = end.agreement.family("__table_info")[(str(table_id),)]["schema_floor"]
    folders = end.cluster.plane.storage.folders
    low = [
        region["root"]
        for region in end.regions(table_id)
        if region["epoch"] > above and region["root"] in folders
        if folders[region["root"]].schema_floor < floor
    ]
    return is_true(not low, f"opened below the floor {floor}: {low}")


def created(end: End) -> list[str]:
    return [
        *effects(end, "table.created"),
        *serving(end, 1090, epoch=1, rows=False),
        *knows_floor(end, 1090, above=0),
        *no_rest(end),
        *is_true("public.new" in end.tables(), "no table"),
    ]


def dropped(end: End) -> list[str]:
    open_regions = [n.serving for n in end.cluster.plane.nodes.values() if n.serving]
    return [
        *effects(end, "table.altered", "table.dropped"),
        *is_true(not end.tables(), "the table is there"),
        *is_true(not open_regions, f"regions are open: {open_regions}"),
        *no_rest(end),
    ]


def purged(end: End) -> list[str]:
    removed = [name for name in end.agreement.keys if name.startswith("__removed-")]
    kept = [name for name in removed if end.agreement.family(name)]
    return [
        *effects(end, "table.purged"),
        *is_true(not kept, f"left: {kept}"),
        *is_true(not end.tables(), "the table is there"),
        *no_rest(end),
    ]


def catalog_dropped(end: End) -> list[str]:
    names = ("__schema_name", "__catalog_name", "__tablespace")
    left = {where for name in names for where in end.agreement.family(name)}
    wanted = {"table.dropped": 1, "schema.dropping": 1, "schema.dropped": 2}
    return [
        *all_dropped(end, {**wanted, "tablespace.dropped": len(default_tablespace_dropped(end))}),
        *is_true(not left, f"left: {sorted(left)}"),
    ]


def empty_catalog_dropped(end: End) -> list[str]:
    return effects(end, *default_tablespace_dropped(end), "schema.dropped", "catalog.dropped")


def default_tablespace_dropped(end: End) -> tuple[str, ...]:
    """The log entry of the tablespace that goes with its catalog; none in a cluster from before
    there were any."""
    return ("tablespace.dropped",) if end.agreement.placing.has_defaults else ()


def schema_dropped(end: End) -> list[str]:
    schemas = set(end.agreement.family("__schema_name"))
    return [
        *all_dropped(end, {"table.dropped": 2, "schema.dropping": 1, "schema.dropped": 1}),
        *is_true(schemas == {("main", "sales")}, f"left: {sorted(schemas)}"),
    ]


def all_dropped(end: End, wanted: dict[str, int]) -> list[str]:
    """Each table once, whatever a resumed parent has done twice; and the files are kept."""
    made = [ops for procedure, ops in end.agreement.effects.items() if procedure is not None]
    flat = [op for ops in made for op in ops if op in wanted]
    open_regions = [n.serving for n in end.cluster.plane.nodes.values() if n.serving]
    return [
        *is_true({op: flat.count(op) for op in wanted} == wanted, f"log entries {flat}"),
        *is_true(not end.tables(), "a table is there"),
        *is_true(not open_regions, f"regions are open: {open_regions}"),
        *no_rest(end),
    ]


def undropped(end: End) -> list[str]:
    # one announcement for all regions, or one for each node that answered
    made = [ops for procedure, ops in end.agreement.effects.items() if procedure is not None]
    undrops = [op for ops in made for op in ops].count("table.undropped")
    return [
        *is_true(undrops == 1, f"{undrops} undrops"),
        *serving(end, TABLE, epoch=2),
        *knows_floor(end, TABLE),
        *is_true("public.t" in end.tables(), "no table"),
        *no_rest(end),
    ]


def undropped_elsewhere(end: End) -> list[str]:
    moved = [r for r in end.regions(TABLE) if r["epoch"] == 3]
    stayed = [r for r in end.regions(TABLE) if r["epoch"] == 2]
    rows = {r["region_id"]: end.cluster.plane.rows(r["region_id"]) for r in end.regions(TABLE)}
    return [
        *is_true(len(moved) == 2 and len(stayed) == 1, f"epochs of {end.regions(TABLE)}"),
        *is_true(all(r["leader"] != "dn-1" for r in moved), "led by a dead node"),
        *is_true(all(r["state"] == "open" for r in end.regions(TABLE)), "not open"),
        *is_true(all(rows[name] == rows_of(name) for name in rows), f"rows {rows}"),
        *knows_floor(end, TABLE),
        *no_rest(end),
    ]


def truncated(end: End) -> list[str]:
    """Every region begun anew once, where it was; nothing of before is left."""
    return [*begun_anew(end, {"dn-1": 2, "dn-2": 1}), *serving(end, TABLE, epoch=2, rows=False)]


def truncated_elsewhere(end: End) -> list[str]:
    """The same; those of the node that is gone, on others.

    A leader that was elected a moment ago takes the node for alive, begins them anew there, and
    once more when it has found out.
    """
    cuts = min(end.regions(TABLE)[0]["epoch"] - 1, 2)
    return [
        *begun_anew(end, {"dn-2": 2, "dn-3": 1}, changes=cuts + 1),
        *serving_at(end, TABLE, (cuts + 1, cuts + 1, 2), rows=False),
    ]


def begun_anew(end: End, leaders: dict[str, int], *, changes: int = 2) -> list[str]:
    regions = end.regions(TABLE)
    rows = {r["region_id"]: end.cluster.plane.rows(r["region_id"]) for r in regions}
    return [
        *effects(end, *["route.changed"] * changes),
        *is_true(Counter(r["leader"] for r in regions) == leaders, f"regions {regions}"),
        *is_true(all(r["announced"] for r in regions), f"not announced: {regions}"),
        *is_true(all(found == frozenset() for found in rows.values()), f"rows {rows}"),
        *knows_floor(end, TABLE),
        *is_true(end.tables()["public.t"]["version"] == 1, "another definition"),
        *no_rest(end),
    ]


def renamed(end: End) -> list[str]:
    return [
        *effects(end, "table.renamed"),
        *is_true(set(end.tables()) == {"sales.s"}, f"tables {set(end.tables())}"),
        *serving(end, TABLE, epoch=1),
    ]


def exchanged(end: End) -> list[str]:
    ids = {name: info["table_id"] for name, info in end.tables().items()}
    return [
        *effects(end, "tables.exchanged"),
        *is_true(ids == {"public.t": OTHER, "public.u": TABLE}, f"tables {ids}"),
        *serving(end, TABLE, epoch=1),
    ]


def altered(end: End) -> list[str]:
    info = end.tables()["public.t"]
    names = [column["name"] for column in info["columns"]]
    return [
        *effects(end, "table.altered"),
        *is_true(names == ["id", "text"] and info["options"] == {"a": "1"}, f"{info}"),
        *is_true(info["version"] == 2, f"version {info['version']}"),
    ]


def failed_over(end: End) -> list[str]:
    moved, stayed = end.regions(TABLE)[:2], end.regions(TABLE)[2]
    rows = {r["region_id"]: end.cluster.plane.rows(r["region_id"]) for r in end.regions(TABLE)}
    states = {(r["epoch"], r["state"], tuple(r["borrows"])) for r in moved}
    return [
        *is_true(states == {(2, RegionState.OPEN.value, ())}, f"moved {moved}"),
        *is_true(all(r["leader"] != "dn-1" for r in moved), "led by a dead node"),
        *is_true((stayed["leader"], stayed["epoch"]) == ("dn-2", 1), f"stayed {stayed}"),
        *is_true(all(rows[name] == rows_of(name) for name in rows), f"rows {rows}"),
        *knows_floor(end, TABLE),
        *no_rest(end),
    ]


def decommissioned(end: End) -> list[str]:
    """Its regions are elsewhere, and it is registered no more."""
    where = ("datanode", "dn-1")
    removed = end.agreement.family("__removed-__node").get(where)
    return [
        *both_failed_over(end),
        *is_true(where not in end.agreement.family("__node"), "the node is registered"),
        *is_true(removed is not None and removed["removal"]["lost"], f"removed: {removed}"),
    ]


def still_registered(end: End) -> list[str]:
    """A failover that was begun goes on, and the node stays."""
    where = ("datanode", "dn-1")
    return [
        *is_true(where in end.agreement.family("__node"), "the node is not registered"),
        *is_true(not end.agreement.family("__removed-__node"), "a node is removed"),
    ]


def both_failed_over(end: End) -> list[str]:
    (other,) = end.regions(OTHER)
    histories = end.agreement.family("__procedure_history").values()
    # A decommission begins another failover of its node where one has failed.
    parents = [v for v in histories if v["last"]["kind"] == "failover_node"]
    told = [v["result"] for v in parents if v["outcome"] == "succeeded"]
    moves = sum(result["moves"] for result in told)
    left = [region for result in told for region in result["left"]]
    failed = sum(v["outcome"] == "failed" for v in histories if v not in parents)
    found = end.cluster.plane.rows(other["region_id"])
    index = {where for where in end.agreement.family("__dn_table") if where[0] == "dn-1"}
    return [
        *failed_over(end),
        *is_true((other["epoch"], other["state"]) == (2, "open"), f"other {other}"),
        *is_true(found == rows_of(other["region_id"]), f"rows {found}"),
        *is_true(not index, f"left on the node: {index}"),
        *is_true((moves, left) == (2 + failed, []), f"told of {moves} moves, {left}"),
    ]
