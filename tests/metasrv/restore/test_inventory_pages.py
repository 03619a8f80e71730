"""Inventories that count only if they are whole, of the cluster and of one node each."""

import pytest

from metasrv.restore.inventory_pages import InventoryReader
from metasrv_base.errors import Refused
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import FoundRoot, Inventory

REGION = 1024 << 32
FIRST = Inventory(
    node_id="dn-1",
    cluster_id="c",
    roots=[FoundRoot(region_id=str(REGION), root="/n/1", column_max=9, index_max=2)],
    dropped=[str(2048 << 32)],
    next=str(REGION + 1),
)
SECOND = FIRST.model_copy(update={"first": FIRST.next, "roots": [], "dropped": [], "next": None})


def read(*pages: Inventory | bytes) -> InventoryReader:
    reader = InventoryReader("c")
    taken = reader.begin("dn-1.json")
    for page in pages:
        taken.take_line(page if isinstance(page, bytes) else page.model_dump_json().encode())
    taken.close()
    return reader


def test_given_all_pages_when_read_then_folders_tombstones_and_numbers_are_known() -> None:
    found = read(FIRST, SECOND).inventories

    assert (found.nodes, found.folders) == ({"dn-1"}, 1)
    assert found.tables == {1024, 2048}
    assert (found.numbers(1024).column, found.numbers(1024).index) == (9, 2)
    assert found.numbers(77).column == 0


WRONG: dict[str, tuple[Inventory | bytes, ...]] = {
    "the page from region": (FIRST,),
    "it is empty": (),
    "a page begins at region": (SECOND,),
    "it is no inventory, or cut": (FIRST.model_dump_json().encode()[:-1],),
    "newer datanode": (FIRST.model_dump_json().replace('"format":1', '"format":2').encode(),),
    "is of cluster other": (FIRST.model_copy(update={"cluster_id": "other"}), SECOND),
    "and then of dn-2": (FIRST, SECOND.model_copy(update={"node_id": "dn-2"})),
    "it ends at region 7": (FIRST, SECOND.model_copy(update={"last": "7"})),
}


@pytest.mark.parametrize("reason", WRONG)
def test_given_an_inventory_that_cannot_be_used_then_it_is_refused_with_the_reason(
    reason: str,
) -> None:
    with pytest.raises(Refused, match=reason):
        read(*WRONG[reason])


def test_given_two_inventories_of_one_node_then_the_second_is_refused() -> None:
    reader = read(FIRST, SECOND)

    with pytest.raises(Refused, match="another inventory of node dn-1"):
        reader.begin("again.json").take(FIRST)


def test_given_the_last_region_when_it_is_the_first_of_a_page_then_the_page_is_the_last() -> None:
    last = str(INT64_END - 1)
    pages = (FIRST.model_copy(update={"next": last}), SECOND.model_copy(update={"first": last}))

    assert read(*pages).inventories.folders == 1
