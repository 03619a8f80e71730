"""A drain moves the members of a partition group after each other, to one node."""

from collections import Counter

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import RouteChanged, TableCreated, TablespaceCreated
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import CopyRole
from metasrv_base.concurrency.turns import at_once
from metasrv_base.ids import RegionId, TableId, number_of, region_id, table_of
from procedures.kinds.moves import drain_plan
from procedures.kinds.moves.arrivals import ARRIVALS_MAX, DrainRules
from procedures.kinds.moves.drain_plan import WAITING_MAX, moves_due
from procedures.kinds.moves.leaving_copies import copy_of, leaving_groups
from procedures.ports import NodeView
from tests.metasrv.leadership.copies.copied_regions import applied, view
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.copies.copied_tables import Copies, copied_info, copied_route
from tests.procedures.harness.tables import table_info, table_route

SPACE = TablespaceInfo(tablespace_id=1_000, catalog="main", name="space", created_at_ms=0)
FIRST = 1_024
VIEWS = (view("dn-1"), view("dn-2"), view("dn-3"))
Member = tuple[int, int]


def alone(table: int, regions: int, space: int | None = SPACE.tablespace_id) -> TableCreated:
    """A table with one copy of each region, on dn-1."""
    info = table_info(table, f"t{table}", regions)
    info = info.model_copy(update={"tablespace_id": space})
    return TableCreated(info=info, route=table_route(table, ("dn-1",) * regions))


def copied(table: int, *copies: Copies) -> TableCreated:
    """A table with copies beside dn-1."""
    info = copied_info(table, f"t{table}", len(copies), len(copies[0]) + 1)
    info = info.model_copy(update={"tablespace_id": SPACE.tablespace_id})
    return TableCreated(info=info, route=copied_route(table, ("dn-1",) * len(copies), copies))


class Round:
    """One round of a drain of dn-1."""

    def __init__(self, *tables: TableCreated, views: tuple[NodeView, ...] = VIEWS) -> None:
        self.catalog = catalog_of(TablespaceCreated(info=SPACE), *tables)
        self.views = views
        self.groups = at_once(leaving_groups(self.catalog, "dn-1"))
        self.arriving: dict[str, str] = {}
        self.gone_to: dict[Member, str] = {}

    def look(self) -> list[Member]:
        """Begins what is due, and returns it: tables and numbers of regions."""
        rules = DrainRules("dn-1", (), self.arriving, self.arriving)
        due = at_once(moves_due(self.catalog, self.views, rules, self.groups, "test"))
        members = list[Member]()
        for change in due:
            self.arriving[change.region_id] = change.to_node
            region = RegionId(int(change.region_id))
            members.append((table_of(region), number_of(region)))
            self.gone_to[members[-1]] = change.to_node
        return members

    def end(self, member: Member) -> None:
        """The move of the region is over."""
        number = str(region_id(TableId(member[0]), member[1]))
        node = self.arriving.pop(number)
        route = self.catalog.tables[member[0]].route
        (region,) = (each for each in route.region_routes if each.region_id == number)
        moved = region.model_copy(update={"leader": node, "epoch": region.epoch + 1})
        changed = RouteChanged(table_id=member[0], version=route.version + 1, regions=(moved,))
        self.catalog = applied(self.catalog, changed)


def counting(monkeypatch: pytest.MonkeyPatch) -> list[Member]:
    """The regions whose tables are decoded from now on."""
    tried = list[Member]()

    def counted(catalog: Catalog, node: str, member: Member) -> object:
        tried.append(member)
        return copy_of(catalog, node, member)

    monkeypatch.setattr(drain_plan, "copy_of", counted)
    return tried


def test_given_groups_when_a_move_ends_then_the_next_of_its_group_begins_else_the_next_group() -> (
    None
):
    """Region 0 of the tables is one group, region 1 the next; there is room for four of each."""
    tables = [alone(FIRST + number, 2) for number in range(6)]
    drain = Round(*tables, alone(FIRST + 9, 1, space=None))

    first = [(FIRST + number, 0) for number in range(ARRIVALS_MAX)]
    second = [(FIRST + number, 1) for number in range(ARRIVALS_MAX)]
    assert drain.look() == [*first, *second]
    assert drain.look() == [], "both nodes take no more"

    drain.end((FIRST + 1, 1))
    assert drain.look() == [(FIRST + 4, 1)], "the next of its group"
    drain.end((FIRST, 0))
    drain.end((FIRST + 1, 0))
    assert drain.look() == [(FIRST + 4, 0), (FIRST + 5, 0)]
    drain.end((FIRST + 2, 0))
    assert drain.look() == [(FIRST + 9, 0)], "the group has no more, and the other one is full"

    by_number = {number: node for (_, number), node in drain.gone_to.items() if node}
    nodes = {(number, node) for (table, number), node in drain.gone_to.items() if table < FIRST + 9}
    assert nodes == set(by_number.items()), "each group on one node"


def test_given_regions_with_copies_then_the_members_follow_the_first_and_wait_for_its_node() -> (
    None
):
    """Fewer regions would draw each of them to another node than the one before."""
    beside: Copies = (("dn-2", CopyRole.IN_SYNC),)
    views = (*VIEWS, view("dn-4"), view("dn-5"))
    tables = [copied(FIRST + number, beside) for number in range(ARRIVALS_MAX + 2)]
    drain = Round(*tables, views=views)

    begun = drain.look()

    assert len(begun) == ARRIVALS_MAX
    assert set(drain.gone_to.values()) == {"dn-3"}
    drain.end(begun[0])
    assert drain.look() == [(FIRST + ARRIVALS_MAX, 0)]
    assert set(drain.gone_to.values()) == {"dn-3"}


def test_given_a_node_of_a_group_that_takes_no_copies_any_more_then_the_rest_goes_to_another() -> (
    None
):
    drain = Round(*(alone(FIRST + number, 1) for number in range(ARRIVALS_MAX + 1)))
    drain.look()
    (node,) = set(drain.gone_to.values())
    drain.views = tuple(view(each.node_id, cordoned=each.node_id == node) for each in VIEWS)

    (last,) = drain.look()

    assert drain.gone_to[last] not in ("dn-1", node)


def test_given_many_groups_that_wait_then_a_look_tries_few_and_begins_what_has_no_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All groups are on dn-2, which is full: a look must not try each of 10,000s of them."""
    number = 3 * WAITING_MAX
    ours, beside = alone(FIRST, number), table_info(FIRST + 1, "there", number)
    beside = beside.model_copy(update={"tablespace_id": SPACE.tablespace_id})
    there = TableCreated(info=beside, route=table_route(FIRST + 1, ("dn-2",) * number))
    drain = Round(ours, there, alone(FIRST + 2, 2, space=None))
    begun = drain.look()
    assert Counter(drain.gone_to.values()) == {"dn-2": ARRIVALS_MAX, "dn-3": 2}
    assert begun[ARRIVALS_MAX:] == [(FIRST + 2, 0), (FIRST + 2, 1)]
    tried = counting(monkeypatch)
    assert drain.look() == []
    assert len(tried) == WAITING_MAX


def test_given_a_large_group_that_waits_then_a_look_tries_one_of_its_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drain = Round(*(alone(FIRST + number, 1) for number in range(WAITING_MAX)))
    drain.look()
    tried = counting(monkeypatch)
    assert drain.look() == []
    assert tried == [(FIRST + ARRIVALS_MAX, 0)]


def test_given_what_has_begun_then_the_looks_of_its_round_try_it_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work of a round is in the number of regions, not in its square."""
    drain = Round(*(alone(FIRST + number, 8) for number in range(8)), alone(FIRST + 9, 64, None))
    tried = counting(monkeypatch)
    while drain.look() or drain.arriving:
        region = RegionId(int(next(iter(drain.arriving))))
        drain.end((table_of(region), number_of(region)))

    assert len(drain.gone_to) == 128
    assert len(tried) < 4 * len(drain.gone_to)
