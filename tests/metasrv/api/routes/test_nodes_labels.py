"""Labels of nodes over HTTP, and the node filters of placements that go by them."""

from typing import Any

from metasrv_base.wire.api.placing.placements import LABELS_MAX
from tests.metasrv.api.rig import TABLES, Server, beat, leader, registration, spec
from tests.metasrv.api.routes.failover_requests import ask

WAIT = {"Prefer": "wait=10"}
LSM = {"name": "lsm", "engine": "lsm"}
SSD = {"labels": [{"label": "disk", "equals": "ssd"}]}


async def label(one: Server, node: str, labels: dict[str, Any], **more: Any) -> Any:
    return await one.client.patch(f"/v1/nodes/{node}", json={"labels": labels}, **more)


async def keep_on(one: Server, node_filter: dict[str, Any]) -> None:
    patch = {"node_filter": node_filter}
    done = await one.client.patch("/v1/placements/default", json=patch, headers=WAIT)
    assert done.status_code == 200, done.text


async def led_by(one: Server) -> set[str]:
    route = (await one.client.get(f"{TABLES}/t/route")).json()
    return {region["leader"] for region in route["regions"]}


async def test_given_labels_when_changed_then_those_not_named_stay_and_a_restart_keeps_them() -> (
    None
):
    async with leader(nodes=1) as one:
        first = await label(one, "dn-1", {"disk": "ssd", "rack": "r7"})
        second = await label(one, "dn-1", {"disk": "nvme", "rack": None, "absent": None})
        await one.term.nodes.register(registration("dn-1", incarnation="i-2"))
        shown = (await one.client.get("/v1/nodes/dn-1")).json()

        assert first.status_code == 200, first.text
        assert first.json()["labels"] == {"disk": "ssd", "rack": "r7"}
        assert second.json()["labels"] == {"disk": "nvme"}
        assert (shown["incarnation"], shown["labels"]) == ("i-2", {"disk": "nvme"})


async def test_given_a_dry_run_then_the_labels_are_told_and_not_set() -> None:
    async with leader(nodes=1) as one:
        tried = await label(one, "dn-1", {"disk": "ssd"}, params={"dry_run": "true"})
        listed = (await one.client.get("/v1/nodes")).json()["nodes"]

        assert tried.json()["labels"] == {"disk": "ssd"}
        assert listed[0]["labels"] == {}


async def test_given_labels_that_cannot_be_then_422_points_at_each_and_none_is_set() -> None:
    async with leader(nodes=1) as one:
        wrong = await label(one, "dn-1", {"disk": "s s d", "rack": "", "fine": "yes"})
        named = await label(one, "dn-1", {"-disk": "ssd"})
        full = await label(one, "dn-1", {f"l{number}": "v" for number in range(LABELS_MAX)})
        more = await label(one, "dn-1", {"one-more": "v"})
        swapped = await label(one, "dn-1", {"one-more": "v", "l0": None})
        nobody = await label(one, "dn-9", {"disk": "ssd"})

        pointers = [fault["pointer"] for fault in wrong.json()["errors"]]
        assert (wrong.status_code, pointers) == (422, ["/labels/disk", "/labels/rack"])
        assert (named.status_code, more.status_code) == (422, 422)
        assert f"at most {LABELS_MAX} labels" in more.text
        assert (full.status_code, swapped.status_code) == (200, 200)
        assert "fine" not in swapped.json()["labels"]
        assert (nobody.status_code, nobody.json()["code"]) == (404, "not-found")


async def test_given_a_filter_when_tables_are_made_then_only_nodes_that_meet_it_take_them() -> None:
    async with leader(nodes=2) as one:
        await keep_on(one, SSD)
        refused = await one.client.post(TABLES, json=spec())
        await label(one, "dn-2", {"disk": "ssd"})
        await one.make(partition={"by": "hash", "columns": ["id"], "count": 3})

        assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
        assert "outside the node filter: label disk=ssd wanted" in refused.text
        assert await led_by(one) == {"dn-2"}


async def test_given_a_filter_that_no_living_node_meets_then_a_failover_waits_for_one() -> None:
    """Altering the filter moves nothing; a failover after it goes by the new one."""
    async with leader(nodes=3) as one:
        await one.make()
        (source,) = await led_by(one)
        others = sorted({"dn-1", "dn-2", "dn-3"} - {source})
        await keep_on(one, SSD)
        still = await led_by(one)
        one.clock.ahead_ms += 120_000
        for node in others:
            one.term.nodes.heartbeat(beat(node, 2))

        begun = await ask(one, node_id=source)
        while "outside the node filter" not in (why := await told(one)):
            await one.term.manager.changed(deadline_ms=200)
        kept = await led_by(one)
        await label(one, others[1], {"disk": "ssd"})
        while await led_by(one) != {others[1]}:
            one.clock.ahead_ms += 1_000
            for node in others:
                one.term.nodes.heartbeat(beat(node, 3 + one.clock.ahead_ms))
            await one.term.manager.changed(deadline_ms=200)

        assert begun.status_code == 202, begun.text
        assert (still, kept) == ({source}, {source})
        assert "label disk=ssd wanted" in why


async def drain(one: Server, node: str, query: str = "", **body: Any) -> Any:
    attempt = {"reason": "a new disk", **body}
    return await one.client.post(
        f"/v1/nodes/{node}/drain{query}", json=attempt, headers={"Prefer": "wait=0"}
    )


async def make_fast(one: Server, **more: Any) -> None:
    """A table `fast` on nodes with disk=ssd."""
    placement = {"name": "fast", "storage_profiles": [LSM], "node_filter": SSD}
    made = await one.client.post("/v1/placements", json=placement, headers=WAIT)
    assert made.status_code == 201, made.text
    await one.make("fast", placement="fast", **more)


def long_after(one: Server) -> None:
    """The grace of the election is over, and every node has been heard since."""
    one.clock.ahead_ms += 120_000
    for status in one.term.nodes.statuses():
        one.term.nodes.heartbeat(beat(status.node.node_id, 2))


async def test_given_a_table_that_no_other_node_may_take_when_drained_then_409_names_it() -> None:
    async with leader(nodes=3) as one:
        await label(one, "dn-1", {"disk": "ssd"})
        await one.make(partition={"by": "hash", "columns": ["id"], "count": 3})
        await make_fast(one)
        long_after(one)

        refused = await drain(one, "dn-1")
        tried = await drain(one, "dn-1", "?dry_run=true")
        cordon = (await one.client.get("/v1/nodes/dn-1")).json()["cordon"]
        other = await drain(one, "dn-2")
        await label(one, "dn-3", {"disk": "ssd"})
        elsewhere = await drain(one, "dn-1", targets=["dn-2"])
        await one.client.post("/v1/nodes/dn-2/uncordon")
        astray = await drain(one, "dn-1", targets=["dn-2"])
        done = await drain(one, "dn-1", targets=["dn-2", "dn-3"])

        found = refused.json()["facts"]
        assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
        assert (found["tables"], found["placements"]) == (["main.public.fast"], ["fast"])
        outside = "outside the node filter: label disk=ssd wanted"
        assert found["reasons"] == {"dn-2": outside, "dn-3": outside}
        said = f"table main.public.fast of placement fast: dn-2 is {outside}; dn-3 is {outside}"
        assert said in refused.json()["detail"]
        assert (tried.status_code, cordon) == (409, None)
        assert (other.status_code, other.json()["kind"]) == (202, "drain_node"), "nothing is fast"
        assert (elsewhere.status_code, elsewhere.json()["facts"]["node_id"]) == (409, "dn-2"), (
            "it is cordoned"
        )
        assert (astray.status_code, astray.json()["facts"]["tables"]) == (409, ["main.public.fast"])
        assert (done.status_code, done.json()["kind"]) == (202, "drain_node")


async def test_given_the_filter_of_the_default_placement_when_drained_then_its_tables_count() -> (
    None
):
    async with leader(nodes=2) as one:
        await label(one, "dn-1", {"disk": "ssd"})
        await make_fast(one)
        await keep_on(one, {"zones": ["nowhere"]})
        await label(one, "dn-2", {"disk": "ssd"})
        long_after(one)

        only_fast = await drain(one, "dn-1", "?dry_run=true")
        await keep_on(one, {"labels": []})
        await one.make("plain", partition={"by": "hash", "columns": ["id"], "count": 2})
        await keep_on(one, {"zones": ["nowhere"]})
        refused = await drain(one, "dn-1")

        assert only_fast.status_code == 200, "the default placement has no table there"
        assert (refused.status_code, refused.json()["facts"]["tables"]) == (
            409,
            ["main.public.plain"],
        )
        assert "zone nowhere wanted" in refused.text


async def test_given_targets_outside_the_filter_when_a_dead_node_is_left_then_409() -> None:
    """Without targets the failover waits (docs/decisions/0258); these would never be right."""
    async with leader(nodes=3) as one:
        await label(one, "dn-1", {"disk": "ssd"})
        await make_fast(one)
        region = (await one.client.get(f"{TABLES}/fast/route")).json()["regions"][0]["region_id"]
        one.clock.ahead_ms += 120_000
        for node in ("dn-2", "dn-3"):
            one.term.nodes.heartbeat(beat(node, 2))

        whole = await ask(one, node_id="dn-1", targets=["dn-2", "dn-3"])
        single = await ask(one, region_ids=[region], targets=["dn-2"], force=True)
        await label(one, "dn-3", {"disk": "ssd"})
        fits = await ask(one, region_ids=[region], targets=["dn-2", "dn-3"])

        for refused in (whole, single):
            assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
            assert refused.json()["facts"]["tables"] == ["main.public.fast"]
        assert fits.status_code == 202, fits.text


async def told(one: Server) -> str:
    return (await one.client.get("/v1/procedures")).text
