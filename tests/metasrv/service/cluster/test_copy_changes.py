"""A leader's node asks that copies join and leave: each change is done once, or refused."""

import asyncio

import pytest

from keys.model.tables import RegionRoute
from metasrv_base.wire.node.copy_changes import CHANGES_MAX
from procedures.kinds.failover.change_copies import CHANGE_COPIES
from tests.metasrv.api.rig import Server, leader
from tests.metasrv.service.cluster.copied import (
    body,
    change_of,
    copied_region,
    post,
    region_now,
    results,
    roles,
)


async def procedures(server: Server) -> int:
    """Procedures of the kind that there were, or are."""
    answer = await server.client.get("/v1/procedures", params={"kind": CHANGE_COPIES.name})
    assert answer.status_code == 200, answer.text
    return len(answer.json()["procedures"])


async def until_stored(server: Server) -> None:
    while not server.term.manager.living():
        await server.term.manager.changed(deadline_ms=1_000)


async def test_given_a_learner_when_its_leader_asks_then_it_joins_and_the_version_is_told() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        (joined,) = await results(server, region.leader, change_of(region, learner))

        now = region_now(server, region)
        assert roles(now) == {in_sync.node: "in-sync", learner.node: "in-sync"}
        assert joined["copies_version"] == now.copies_version == region.copies_version + 1
        assert joined["error"] is None
        assert now.epoch == region.epoch


async def test_given_an_answer_that_was_lost_when_sent_again_then_done_once() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        leave = change_of(region, region.copies[0])

        (first,) = await results(server, region.leader, leave)
        (again,) = await results(server, region.leader, leave)

        assert again["copies_version"] == first["copies_version"] == region.copies_version + 1
        assert again["procedure_id"] is None  # the catalog says so
        assert await procedures(server) == 1


async def test_given_a_change_under_way_when_sent_again_then_it_is_that_procedure() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        leave = change_of(region, region.copies[0])
        server.term.manager.gate.close("test")

        async with asyncio.TaskGroup() as tasks:
            repeats = [
                tasks.create_task(results(server, region.leader, change))
                for change in (leave, leave, {**leave, "reason": "in other words"})
            ]
            await until_stored(server)
            other = change_of(region, region.copies[1])
            (refused,) = await results(server, region.leader, other)
            server.term.manager.gate.open()
        answers = [result for repeat in repeats for result in repeat.result()]

        assert len({result["procedure_id"] for result in answers}) == 1
        assert {result["copies_version"] for result in answers} == {region.copies_version + 1}
        assert refused["error"]["code"] == "object-locked"
        assert await procedures(server) == 1


async def test_given_a_leader_of_metasrv_that_ends_when_sent_to_the_next_then_done_once() -> None:
    async with leader(nodes=3) as first:
        region = await copied_region(first)
        join = change_of(region, region.copies[1])
        first.term.manager.gate.close("it dies before the step")
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(results(first, region.leader, join))
            await until_stored(first)
            first.state.stop()
        (under_way,) = answer.result()

    async with leader(nodes=3, make_kv=lambda clock: first.kv) as second:
        (done,) = await results(second, region.leader, join)

        assert under_way["copies_version"] is None
        assert under_way["error"] is None
        assert done["copies_version"] == region.copies_version + 1
        assert await procedures(second) == 1
        assert region_now(second, region).copies_version == region.copies_version + 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epoch": 0}, "stale-epoch"),
        ({"epoch": 9}, "stale-epoch"),
        ({"copies_version": 0}, "version-mismatch"),
        ({"copies_version": 9}, "version-mismatch"),
        ({"root": "/another/disk"}, "version-mismatch"),
        ({"node": "dn-9"}, "version-mismatch"),
        ({"region_id": str(999 << 32)}, "not-found"),
    ],
)
async def test_given_a_change_of_another_epoch_version_or_disk_then_refused_and_nothing_changes(
    change: dict[str, object], code: str
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        wrong = {**change_of(region, region.copies[0]), **change}
        right = change_of(region, region.copies[1])

        refused, joined = await results(server, region.leader, wrong, right)

        assert (refused["error"]["code"], refused["copies_version"]) == (code, None)
        assert joined["copies_version"] == region.copies_version + 1
        assert set(roles(region_now(server, region)).values()) == {"in-sync"}


async def test_given_a_copy_when_it_asks_in_place_of_its_leader_then_refused() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        (refused,) = await results(server, in_sync.node, change_of(region, learner))

        assert refused["error"]["code"] == "stale-epoch"
        assert region_now(server, region) == region
        assert await procedures(server) == 0


async def test_given_two_changes_of_one_version_then_one_is_done_and_the_other_is_refused() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        pair = await results(
            server, region.leader, change_of(region, in_sync), change_of(region, learner)
        )

        codes = [result["error"] and result["error"]["code"] for result in pair]
        assert codes in (
            [None, "object-locked"],
            ["object-locked", None],
            [None, "version-mismatch"],
        )
        assert region_now(server, region).copies_version == region.copies_version + 1


def _wrong(region: RegionRoute) -> list[tuple[dict[str, object], int, str]]:
    join = change_of(region, region.copies[1])
    node = region.leader
    many = [join] * (CHANGES_MAX + 1)
    return [
        (body(node, join, incarnation="i-0"), 410, "stale-incarnation"),
        (body(node, join, cluster_id="another"), 409, "wrong-cluster"),
        (body("dn-9", join), 422, "invalid-request"),
        (body(node), 422, "invalid-request"),
        (body(node, *many), 422, "invalid-request"),
        (body(node, {**join, "node": "-"}), 422, "invalid-identifier"),
        (body(node, {**join, "region_id": "9" * 19}), 422, "invalid-request"),
        (body(node, {**join, "reason": ""}), 422, "invalid-request"),
        (body(node, {**join, "change": "lead"}), 422, "invalid-request"),
    ]


async def test_given_messages_that_mean_nothing_then_each_has_its_problem_and_changes_nothing() -> (
    None
):
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        url = f"/internal/v1/nodes/{region.leader}/copies"

        for message, status, code in _wrong(region):
            answer = await server.client.post(url, json=message)
            assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text

        answer = await post(server, "dn-9", change_of(region, region.copies[1]))
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert region_now(server, region) == region
        assert await procedures(server) == 0


async def test_given_a_set_that_falls_below_the_minimum_then_each_answer_says_who_may_lead() -> (
    None
):
    """The leader goes by the answer, also by that to a request that says less by now."""
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        leave = change_of(region, region.copies[0])

        (first,) = await results(server, region.leader, {**leave, "eligible": True})
        (again,) = await results(server, region.leader, leave)

        assert (first["eligible"], again["eligible"]) == (True, True)
        now = region_now(server, region)
        assert [copy.root for copy in now.eligible] == [region.copies[0].root]
        join = change_of(now, now.copies[1])
        (joined,) = await results(server, region.leader, join)
        assert "eligible" not in joined
        assert not region_now(server, region).eligible
