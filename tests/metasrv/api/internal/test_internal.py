"""Claims of a node about regions are never believed against the catalog."""

from typing import Any

import pytest

from tests.metasrv.api.bad_nodes import REGION
from tests.metasrv.api.rig import TABLES, Server, beat, leader
from tests.metasrv.nodes.samples import stat

AHEAD = 10**6


async def said(one: Server, node: str, sequence: int, **claim: Any) -> dict[str, Any]:
    """The answer to a heartbeat that claims one region."""
    claimed = stat(REGION, root=None).model_copy(update=claim)
    body = beat(node, sequence, regions=[claimed]).model_dump(mode="json")
    answer = await one.client.put(f"/internal/v1/nodes/{node}/heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.case("input 93-95")
async def test_given_claims_that_are_not_true_when_beating_then_no_lease_and_no_route_changes() -> (
    None
):
    async with leader() as one:
        made = await one.make()
        (region,) = made["regions"]
        other = "dn-2" if region["leader"] == "dn-1" else "dn-1"
        claim = {"region_id": region["region_id"]}
        before = (await one.client.get(f"{TABLES}/t/route")).json()
        nowhere = str(999 << 32)

        foreign = await said(one, other, AHEAD, **claim, epoch=9)
        ahead = await said(one, region["leader"], AHEAD, **claim, epoch=9)
        unknown = await said(one, other, AHEAD + 1, region_id=nowhere)
        rooted = await said(one, other, AHEAD + 2, region_id=nowhere, root="/left/behind")
        late = await said(one, other, AHEAD, **claim)
        right = await said(one, region["leader"], AHEAD + 1, **claim)

        assert [answer["grants"] for answer in (foreign, ahead, unknown, rooted, late)] == [[]] * 5
        assert [order["op"] for order in foreign["instructions"]] == ["close"]
        assert [(order["op"], order["epoch"]) for order in ahead["instructions"]] == [("open", 1)]
        assert [order["op"] for order in unknown["instructions"]] == ["close"]
        assert [order["op"] for order in rooted["instructions"]] == ["drop"]
        assert late["instructions"] == []
        assert right["grants"] == [{**claim, "epoch": 1}]
        assert (await one.client.get(f"{TABLES}/t/route")).json() == before
