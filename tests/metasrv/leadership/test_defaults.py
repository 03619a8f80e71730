"""The defaults of a cluster that was made before it had them."""

from keys.catalog.catalog import Catalog
from keys.commit.change import change
from keys.commit.txn import Txn, snapshot
from keys.model.catalogs import CatalogInfo, CatalogNameKey
from keys.model.log import CatalogCreated, CatalogDropping, PlacementDropped, TablespaceDropped
from keys.model.placing.placements import PlacementKey
from keys.model.placing.tablespaces import TablespaceKey
from metasrv.leadership.defaults import AT_ONCE, make_defaults, missing
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader


async def older(one: Server, catalogs: int = 1) -> None:
    """Makes of *one* what a version without placements has left."""
    keys = (PlacementKey("default"), TablespaceKey("main", "default"))
    read = await snapshot(one.kv, *keys, deadline_ms=DEADLINE_MS)
    gone = (PlacementDropped(name="default"), TablespaceDropped(catalog="main", name="default"))
    await one.term.committer.commit(change(read, *gone))
    for number in range(catalogs):
        await one.term.committer.commit(await created(one, number))


async def created(one: Server, number: int) -> Txn:
    name = f"c{number}"
    read = await snapshot(one.kv, CatalogNameKey(name), deadline_ms=DEADLINE_MS)
    info = CatalogInfo(catalog_id=2_000 + number, name=name, created_at_ms=7)
    return change(read, CatalogCreated(info=info))


def defaults(catalog: Catalog) -> dict[str, int]:
    spaces = catalog.placing.tablespaces
    return {name: spaces[name]["default"].tablespace_id for name in spaces}


async def test_given_a_cluster_without_defaults_when_led_then_each_is_made_once() -> None:
    async with leader() as one:
        await older(one, AT_ONCE + 2)
        before = one.version

        await make_defaults(one.term, one.clock)
        made = one.version
        await make_defaults(one.term, one.clock)

        catalog = one.state.follower.catalog
        assert list(missing(catalog)) == []
        assert catalog.placing.placements["default"].placement_id == 1024
        assert defaults(catalog) == {n: c.catalog_id for n, c in catalog.catalogs.items()}
        assert (made - before, one.version) == (2, made)


async def test_given_a_catalog_that_is_being_dropped_when_led_then_nothing_is_made_in_it() -> None:
    async with leader() as one:
        await older(one)
        info = one.state.follower.catalog.catalogs["c0"]
        read = await snapshot(one.kv, CatalogNameKey("c0"), deadline_ms=DEADLINE_MS)
        leaving = CatalogDropping(info=info.model_copy(update={"dropping": "p"}))
        await one.term.committer.commit(change(read, leaving))

        await make_defaults(one.term, one.clock)

        assert defaults(one.state.follower.catalog) == {"main": 1024}
