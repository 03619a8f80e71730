"""Copies that are missing go to their partition group; else to where its tablespace has fewest."""

from collections.abc import Sequence

from keys.catalog.catalog import Catalog
from keys.catalog.tables.partition_groups import Groups
from keys.model.log import TableCreated, TablespaceCreated
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import CopyRole, TableInfo
from metasrv.leadership.copies.copy_plan import (
    LEARNERS_MAX,
    CopyNodes,
    Need,
    need_of,
    plan_copies,
)
from metasrv.leadership.copies.copy_survey import regions_of
from procedures.ports import NodeView
from procedures.steps.copies.neighbours import Neighbours
from tests.metasrv.leadership.copies.copied_regions import nodes_of, view
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.copies.copied_tables import Copies, copied_info, copied_route

SPACE = TablespaceInfo(tablespace_id=1_000, catalog="main", name="space", created_at_ms=0)
ALONE: Copies = ()


def beside(node: str) -> Copies:
    return ((node, CopyRole.IN_SYNC),)


def table(number: int, *copies: Copies, space: int | None = SPACE.tablespace_id) -> TableCreated:
    """Regions that dn-1 leads, each with *copies*; two are to be there."""
    info = copied_info(number, f"t{number}", len(copies))
    info = info.model_copy(update={"tablespace_id": space})
    return TableCreated(info=info, route=copied_route(number, ("dn-1",) * len(copies), copies))


def catalog(*tables: TableCreated) -> Catalog:
    return catalog_of(TablespaceCreated(info=SPACE), *tables)


def needs_of(of: Catalog, nodes: CopyNodes) -> list[Need]:
    needs = [need_of(copied, nodes) for number in of.tables for copied in regions_of(of, number)]
    return [need for need in needs if need is not None]


def chosen(of: Catalog, *views: NodeView) -> list[str]:
    """The nodes of the copies that are made, by region."""
    nodes = nodes_of(*views)
    plan = plan_copies(needs_of(of, nodes), nodes, Neighbours(of.copy_groups))
    return [work.node for work in sorted(plan, key=lambda work: work.region_id)]


FOUR = (view("dn-1"), view("dn-2", regions=50), view("dn-3", regions=9), view("dn-4"))


def test_given_copies_of_the_group_then_a_missing_one_goes_to_the_node_with_most_of_them() -> None:
    """dn-3 has copies of the group of region 1; region 0 of no table is there or on dn-4."""
    whole = table(1_024, beside("dn-2"), beside("dn-3"))
    other = table(1_025, beside("dn-2"), beside("dn-3"))
    lacking = table(1_026, ALONE, ALONE)

    assert chosen(catalog(whole, other, lacking), *FOUR) == ["dn-2", "dn-3"]


def test_given_a_group_that_others_lead_then_their_node_counts_too() -> None:
    """dn-3 only leads regions of the group."""
    info = copied_info(1_024, "t1024", 1, replicas=1)
    info = info.model_copy(update={"tablespace_id": SPACE.tablespace_id})
    led = TableCreated(info=info, route=copied_route(1_024, ("dn-3",), (ALONE,)))

    assert chosen(catalog(led, table(1_025, ALONE)), *FOUR) == ["dn-3"]


def test_given_a_zone_without_a_copy_then_it_goes_before_the_group() -> None:
    near = (view("dn-1", "a"), view("dn-2", "a"), view("dn-3", "b", regions=99))
    tables = table(1_024, beside("dn-2")), table(1_025, ALONE)

    assert chosen(catalog(*tables), *near) == ["dn-3"], "safety goes first"
    assert chosen(catalog(*tables), *near[:2]) == ["dn-2"]


def test_given_no_copy_of_the_group_then_a_node_with_fewest_of_the_tablespace_takes_it() -> None:
    """The third region of the last table is the only one of its group: dn-4 has fewer regions of
    the tablespace than dn-2, although more of others."""
    whole = table(1_024, beside("dn-2"), beside("dn-4"))
    other = table(1_025, beside("dn-2"), beside("dn-2"))
    lacking = table(1_026, beside("dn-2"), beside("dn-4"), ALONE)
    views = (view("dn-1"), view("dn-2"), view("dn-4", regions=70))

    assert chosen(catalog(whole, other, lacking), *views) == ["dn-4"]


def test_given_the_default_tablespace_then_the_node_with_fewest_regions_takes_it() -> None:
    tables = [table(number, beside("dn-2"), space=None) for number in (1_024, 1_025)]

    assert chosen(catalog(*tables, table(1_026, ALONE, space=None)), *FOUR) == ["dn-4"]


def test_given_a_node_that_had_a_whole_group_then_it_is_made_anew_on_one_other() -> None:
    """A choice counts at once; a copy that the node does not take now goes elsewhere, and does not
    wait."""
    tables = [table(1_024 + number, ALONE, ALONE) for number in range(3)]
    views = (view("dn-1"), view("dn-2"), view("dn-3"), view("dn-4"))

    of_three = chosen(catalog(*tables), *views)
    many = [table(1_024 + number, ALONE) for number in range(LEARNERS_MAX + 1)]
    of_many = chosen(catalog(*many), *views)

    assert of_three == ["dn-2", "dn-3"] * 3
    assert of_many == ["dn-2"] * LEARNERS_MAX + ["dn-3"]


def test_given_many_needs_for_which_there_is_no_room_then_a_tablespace_is_counted_once() -> None:
    """A look at 10,000s of regions is not as many looks at their tablespaces."""
    of = catalog(table(1_024, *[ALONE] * 300))
    nodes = nodes_of(view("dn-1"))
    counted = list[int]()

    def groups_of(info: TableInfo) -> Groups:
        counted.append(info.table_id)
        return of.copy_groups(info)

    needs = needs_of(of, nodes)
    plan: Sequence[object] = plan_copies(needs, nodes, Neighbours(groups_of))

    assert (len(needs), plan, len(counted)) == (300, (), 1)
