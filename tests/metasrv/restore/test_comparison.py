"""A backup and what nodes hold, compared before anything is written."""

import pytest

from keys.model.tables import Index, TableInfoKey, TableRouteKey
from metasrv.restore.comparison import BackupComparison, compared
from metasrv.restore.found_regions import FoundRegions
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.node.adoption import FoundRoot, Inventory, QuarantinedRoot
from tests.metasrv.check.cluster import CLUSTER_ID, FLIGHTS, WEATHER
from tests.metasrv.restore.backups import Backup, pieces

UNKNOWN = 9_999


def root(region_id: str, path: str, epoch: int = 1, **more: object) -> FoundRoot:
    found = FoundRoot(
        region_id=region_id,
        root=path,
        fence_epoch=epoch,
        fence_opening=1,
        opener=path,
        manifest_epoch=epoch,
        manifest_opening=1,
    )
    return found.model_copy(update=more)


def compare(backup: Backup, *inventories: Inventory, data: bytes | None = None) -> BackupComparison:
    found = FoundRegions()
    for inventory in inventories:
        found.take(inventory)
    return compared(pieces(data or backup.data), found)


def inventory(node: str, *roots: FoundRoot, dropped: tuple[str, ...] = ()) -> Inventory:
    return Inventory(node_id=node, cluster_id=CLUSTER_ID, roots=list(roots), dropped=list(dropped))


def test_given_folders_when_compared_then_each_region_that_is_elsewhere_is_told(
    backup: Backup,
) -> None:
    first, second = backup.value(TableRouteKey(FLIGHTS)).region_routes
    (weather,) = backup.value(TableRouteKey(WEATHER)).region_routes
    moved = root(first.region_id, "/moved", epoch=9)

    said = compare(
        backup,
        inventory("dn-1", root(first.region_id, first.root, fence_epoch=9, opener="/moved")),
        inventory("dn-2", root(second.region_id, second.root), moved),
        inventory("dn-3", root(str(UNKNOWN << 32), "/x"), dropped=(weather.region_id,)),
    )

    told = {each.region_id: (each.table, each.fate) for each in said.findings}
    assert told == {
        first.region_id: ("main.public.flights", "moved"),
        weather.region_id: ("main.sales.weather", "dropped"),
    }
    assert said.fates == {"kept": 1, "moved": 1, "dropped": 1}
    assert (said.unknown_tables, said.unknown_total) == ([UNKNOWN], 1)


def test_given_a_folder_in_quarantine_when_compared_then_it_counts_as_where_it_was(
    backup: Backup,
) -> None:
    """The node that opens the region there puts it back."""
    first, _ = backup.value(TableRouteKey(FLIGHTS)).region_routes
    here = root(first.region_id, first.root)
    held = [
        QuarantinedRoot(folder=folder, path=f"/q/{number}", at_ms=7, bytes=1)
        for number, folder in enumerate(
            [here.model_copy(update={"fence_epoch": 9}), root(str(UNKNOWN << 32), "/x")]
        )
    ]
    page = inventory("dn-1", here)

    there = compare(backup, page.model_copy(update={"quarantined": held[1:]}))
    both = compare(backup, page.model_copy(update={"quarantined": held}))
    alone = compare(backup, inventory("dn-1").model_copy(update={"quarantined": held[:1]}))
    gone = compare(backup, inventory("dn-1"))

    assert there.unknown_tables == [UNKNOWN]
    assert there.fates == both.fates == compare(backup, page).fates
    assert alone.fates["missing"] < gone.fates["missing"]


def test_given_no_folder_then_every_region_is_missing(backup: Backup) -> None:
    said = compare(backup, inventory("dn-1"))

    assert said.fates == {"missing": 3}
    assert len(said.findings) == 3


@pytest.mark.parametrize(
    ("index_max", "indexes", "is_told"),
    [(0, [], False), (1, [], True), (2, [2], True), (2, [1, 2], False)],
)
def test_given_an_index_on_its_way_when_a_folder_has_forgotten_it_then_it_is_told(
    backup: Backup, index_max: int, indexes: list[int], *, is_told: bool
) -> None:
    """A folder that has not heard of it yet says nothing."""
    (weather,) = backup.value(TableRouteKey(WEATHER)).region_routes
    key, state = TableInfoKey(WEATHER), ElementState.WRITE_ONLY
    index = Index(id=1, name="by_city", columns=(1,), unique=False, state=state)
    info = backup.value(key).model_copy(update={"indexes": (index,)})
    at = root(weather.region_id, weather.root, weather.epoch, index_max=index_max, indexes=indexes)

    said = compare(backup, inventory("dn-2", at), data=backup.file(more={key: info}))

    fates = {each.fate for each in said.findings if each.table == "main.sales.weather"}
    assert fates == ({"index-dropped"} if is_told else set())


def test_given_a_folder_without_an_index_then_it_is_told_with_its_table(backup: Backup) -> None:
    (weather,) = backup.value(TableRouteKey(WEATHER)).region_routes
    key = TableInfoKey(WEATHER)
    index = Index(id=1, name="by_city", columns=(1,), unique=False)
    info = backup.value(key).model_copy(update={"indexes": (index,)})
    data = backup.file(more={key: info})
    at = root(weather.region_id, weather.root, epoch=weather.epoch)

    gone = compare(backup, inventory("dn-2", at), data=data)
    there = compare(backup, inventory("dn-2", at.model_copy(update={"indexes": [1]})), data=data)

    (finding,) = [each for each in gone.findings if each.table == "main.sales.weather"]
    assert (finding.fate, "by_city" in finding.reason) == ("index-dropped", True)
    assert [each for each in there.findings if each.table == "main.sales.weather"] == []


def test_given_a_later_folder_without_a_column_then_it_is_told_before_anything_is_written(
    backup: Backup,
) -> None:
    (weather,) = backup.value(TableRouteKey(WEATHER)).region_routes
    info = backup.value(TableInfoKey(WEATHER))
    ids = [column.id for column in info.columns]
    at = root(weather.region_id, weather.root, epoch=weather.epoch)

    def told(columns: list[int] | None, schema_version: int) -> list[tuple[str, str]]:
        update = {"columns": columns, "schema_version": schema_version}
        said = compare(backup, inventory("dn-2", at.model_copy(update=update)))
        return [
            (each.fate, each.reason) for each in said.findings if each.table == "main.sales.weather"
        ]

    later = info.schema_version + 1
    ((fate, reason),) = told([*ids[:-1], 900], later)
    assert fate == "column-dropped"
    assert reason.startswith(f"its column {info.columns[-1].name} was dropped after the backup")
    assert told([*ids, 900], later) == []
    assert told(ids[:-1], info.schema_version) == [], "a region that had not heard of it yet"
    assert told(None, later) == [], "a node that does not say"
