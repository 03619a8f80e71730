"""Folders that no route names: put into quarantine by order, told of, put back, deleted."""

import pytest

from metasrv_base.wire.node.adoption import Inventory, QuarantinedRoot
from metasrv_base.wire.node.orders import DeleteQuarantined, Order, QuarantineRoot
from tests.node_conformance.node import Node, Write, new_region

pytestmark = pytest.mark.process


def code(node: Node, *orders: Order) -> str | None:
    """Returns the code of the last order's result."""
    error = node.order(*orders).results[-1].error
    return None if error is None else error.code


def inventory(node: Node, region: int) -> Inventory:
    said = node.http.get(f"{node.url}/node/v1/inventory?first={region}&last={region}")
    return Inventory.model_validate_json(said.content)


def held(node: Node, region: int) -> list[QuarantinedRoot]:
    quarantined = inventory(node, region).quarantined
    assert quarantined is not None
    return quarantined


def left_behind(node: Node) -> int:
    """A region with a row that is not open any more."""
    region = new_region()
    create = node.create_order(region, root=root_of(node, region))
    assert code(node, create) is None
    node.write(region, [Write(b"a", 1)], "s1")
    assert code(node, node.close_order(region, epoch=1)) is None
    return region


def root_of(node: Node, region: int) -> str:
    return f"{node.root}/regions/{region}-1"


def quarantine(node: Node, region: int) -> QuarantineRoot:
    (root,) = inventory(node, region).roots
    return QuarantineRoot(
        number=node.next_number(),
        region_id=str(region),
        epoch=root.fence_epoch,
        root=root.root,
        fence_epoch=root.fence_epoch,
        fence_opening=root.fence_opening,
        at_ms=7,
    )


def delete(node: Node, region: int) -> DeleteQuarantined:
    number, root = node.next_number(), root_of(node, region)
    return DeleteQuarantined(number=number, region_id=str(region), epoch=1, root=root, at_ms=7)


def test_given_a_folder_when_put_into_quarantine_then_it_is_told_apart_until_it_is_deleted(
    node: Node,
) -> None:
    region = left_behind(node)

    assert code(node, quarantine(node, region)) is None
    (told,) = held(node, region)
    assert inventory(node, region).roots == []
    assert (told.folder.root, told.at_ms) == (root_of(node, region), 7)
    assert told.bytes > 0
    assert code(node, delete(node, region)) is None
    assert held(node, region) == []
    assert code(node, node.open_order(region, 2, root=root_of(node, region))) == "region-lost"


def test_given_a_folder_in_quarantine_when_the_region_is_opened_there_then_its_rows_are_read(
    node: Node,
) -> None:
    region = left_behind(node)
    assert code(node, quarantine(node, region)) is None

    assert code(node, node.open_order(region, 2, root=root_of(node, region))) is None
    assert code(node, delete(node, region)) is None

    assert [row.key for row in node.scan(region, epoch=2).rows] == [b"a".hex()]
    assert held(node, region) == []


def test_given_a_folder_that_is_used_or_was_fenced_since_when_ordered_then_it_stays(
    node: Node,
) -> None:
    region = left_behind(node)
    judged = quarantine(node, region)
    assert code(node, node.open_order(region, 2, root=root_of(node, region))) is None

    used = code(node, judged.model_copy(update={"number": node.next_number(), "epoch": 2}))
    assert code(node, node.close_order(region, epoch=2)) is None
    fenced = code(node, judged.model_copy(update={"number": node.next_number()}))
    elsewhere = judged.model_copy(
        update={"number": node.next_number(), "root": f"{node.root}/{region}-1"}
    )

    assert (used, fenced) == ("action-not-allowed", "stale-epoch")
    assert code(node, elsewhere) == "invalid-request"
    assert held(node, region) == []


def test_given_an_order_that_comes_late_when_the_folder_has_gone_then_it_is_not_made_again(
    node: Node,
) -> None:
    region = new_region()
    late = node.create_order(region, root=root_of(node, region))
    early = node.create_order(region, root=root_of(node, region))
    assert code(node, early, node.close_order(region, epoch=1)) is None
    assert code(node, quarantine(node, region)) is None
    assert code(node, delete(node, region)) is None

    assert code(node, late) == "outcome-unknown"
    assert code(node, early) == "outcome-unknown"
    assert inventory(node, region).roots == []
