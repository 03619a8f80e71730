"""Engines of regions on a real node: what it lacks is refused, and what ends is never served."""

import pytest

from metasrv_base.wire.node.orders import Order, OrderError
from tests.node_conformance.node import Node, Write, new_region

pytestmark = pytest.mark.process


def error_of(node: Node, order: Order) -> OrderError | None:
    return node.order(order).results[0].error


def test_given_an_engine_that_the_node_lacks_when_ordered_then_refused_with_those_it_has(
    node: Node,
) -> None:
    order = node.create_order(new_region(), engine="punched-cards")

    first, again = error_of(node, order), error_of(node, order)

    assert first is not None
    assert (first.code, "lsm" in first.facts["has"]) == ("unsupported", True)
    assert again == first, "it is executed, and the answer is stored"


def test_given_an_option_that_the_engine_lacks_when_ordered_then_refused(node: Node) -> None:
    error = error_of(node, node.create_order(new_region(), engine_options={"colour": 1}))

    assert error is not None
    assert error.code == "invalid-request"


def test_given_a_region_in_memory_when_closed_then_lost_and_made_anew_it_serves(
    node: Node,
) -> None:
    region = new_region()
    if (error := error_of(node, node.create_order(region, engine="memory"))) is not None:
        assert error.code == "unsupported"
        pytest.skip("the node has no engine `memory`, and says so")
    node.write(region, [Write(b"a", 1)], "s1")
    assert [row.key for row in node.scan(region, epoch=1).rows] == [b"a".hex()]

    node.order(node.close_order(region, epoch=1))
    opened = error_of(node, node.open_order(region, epoch=2, engine="memory"))
    written = node.post(region, "scan")

    assert opened is not None
    assert opened.code == "region-lost"
    assert written.status_code == 503
    assert written.json()["code"] == "region-lost"
    root = f"{node.root_of(region)}-3"
    anew = node.create_order(region, epoch=3, root=root, engine="memory")
    assert error_of(node, anew) is None
    assert node.scan(region, epoch=3).rows == []
