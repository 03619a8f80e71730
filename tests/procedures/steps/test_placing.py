"""The choice of nodes for regions, and its limits."""

from dataclasses import replace

import pytest

from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.nodes import HEARTBEAT_REGIONS_MAX
from procedures.ports import NodeView
from procedures.steps.placing import DISK_FREE_MIN_BYTES, NODE_REGIONS_MAX, place

NODE = NodeView("dn-1", "z", "/data", alive=True, regions=0, disk_free_bytes=1 << 40)


def node(name: str, regions: int) -> NodeView:
    return replace(NODE, node_id=name, regions=regions)


def test_given_a_full_node_when_regions_are_placed_then_others_take_them() -> None:
    nodes = (node("dn-1", NODE_REGIONS_MAX), node("dn-2", NODE_REGIONS_MAX - 5))

    chosen = place(nodes, 5)

    assert [one.node_id for one in chosen] == ["dn-2"] * 5


def test_given_nodes_that_are_full_before_all_are_placed_then_it_is_refused_with_the_limit() -> (
    None
):
    """A node of more regions than its heartbeat may report would never be heard again."""
    with pytest.raises(Unavailable) as refused:
        place((node("dn-1", NODE_REGIONS_MAX - 1), node("dn-2", NODE_REGIONS_MAX - 1)), 3)

    reason = f"{NODE_REGIONS_MAX} regions, {NODE_REGIONS_MAX} at most"
    assert refused.value.facts["reasons"] == {"dn-1": reason, "dn-2": reason}
    assert NODE_REGIONS_MAX < HEARTBEAT_REGIONS_MAX


def test_given_nodes_of_as_many_regions_when_placed_then_the_emptiest_zone_comes_first() -> None:
    nodes = (
        node("dn-1", 3),
        node("dn-2", 3),
        replace(node("dn-3", 3), zone="far"),
    )

    chosen = place(nodes, 3)

    assert [one.node_id for one in chosen] == ["dn-1", "dn-3", "dn-2"]


def test_given_a_disk_that_is_nearly_full_then_its_node_takes_no_region_and_it_is_told() -> None:
    full = replace(node("dn-1", 0), disk_free_bytes=DISK_FREE_MIN_BYTES - 1)

    chosen = place((full, node("dn-2", 9)), 2)
    with pytest.raises(Unavailable) as refused:
        place((full,), 1)

    assert [one.node_id for one in chosen] == ["dn-2", "dn-2"]
    assert refused.value.facts["reasons"] == {"dn-1": "255 MiB of disk free, 256 needed"}
