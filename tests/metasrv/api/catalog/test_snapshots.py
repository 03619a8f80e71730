"""Snapshots on request and pins, over HTTP, at the leader and through another server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metasrv.leadership.log.compaction import LogCompaction
from tests.metasrv.api.rig import Server, follower_of, leader

PINS = "/v1/catalog/pins"
SNAPSHOTS = "/v1/catalog/snapshots"


@asynccontextmanager
async def compacting() -> AsyncIterator[Server]:
    """A leader that makes snapshots."""
    async with leader(nodes=1) as one, asyncio.TaskGroup() as tasks:
        compaction = LogCompaction(one.term, one.kv, one.state.follower, one.clock)
        running = tasks.create_task(compaction.run())
        yield one
        running.cancel()


async def test_given_a_request_when_a_snapshot_is_made_then_it_says_what_is_left() -> None:
    async with compacting() as one, follower_of(one) as other:
        await one.make("a")
        version = one.version

        made = await other.client.post(SNAPSHOTS, json={})
        again = await one.client.post(SNAPSHOTS, json={"drop_history": True})

        assert made.status_code == again.status_code == 200, again.text
        whole = {"version": version, "made": True, "oldest_version": 0, "deleted": 0}
        assert made.json() == whole
        cut = {"version": version, "made": False, "oldest_version": version, "deleted": version}
        assert again.json() == cut
        wrong = await one.client.post(SNAPSHOTS, json={"drop_history": "yes"})
        assert wrong.status_code == 422


async def test_given_a_pin_when_set_renewed_and_deleted_then_it_is_listed_meanwhile() -> None:
    async with compacting() as one, follower_of(one) as other:
        await one.make("a")
        version = one.version
        pin = {"name": "nightly", "version": version, "reason": "export", "expires_in_s": 60}

        first = await other.client.post(PINS, json=pin)
        assert first.status_code == 200, first.text
        one.clock.ahead_ms += 30_000
        second = await one.client.post(PINS, json=pin)
        listed = (await other.client.get(PINS)).json()

        assert second.json()["since"] == first.json()["since"]
        assert second.json()["expires_at"] > first.json()["expires_at"]
        assert [each["what"] for each in listed["pins"]] == ["pin nightly"]
        assert listed["catalog_version"] == version
        assert (await one.client.delete(f"{PINS}/nightly")).status_code == 204
        assert (await one.client.delete(f"{PINS}/nightly")).status_code == 404
        assert (await one.client.get(PINS)).json()["pins"] == []


async def test_given_a_pin_that_cannot_be_when_set_then_it_is_refused() -> None:
    async with compacting() as one:
        await one.make("a")
        version = one.version
        await one.client.post(SNAPSHOTS, json={"drop_history": True})
        await one.make("b")

        for change, status in (
            ({"version": version - 1}, 410),
            ({"version": one.version + 1}, 422),
            ({"version": 0}, 422),
            ({"name": "a/b"}, 422),
            ({"expires_in_s": 86_401}, 422),
            ({"reason": ""}, 422),
        ):
            pin = {"name": "p", "version": version, "reason": "r", **change}
            answer = await one.client.post(PINS, json=pin)
            assert answer.status_code == status, (change, answer.text)
        assert (
            await one.client.post(PINS, json={"name": "p", "version": one.version, "reason": "r"})
        ).is_success
        back = await one.client.post(PINS, json={"name": "p", "version": version, "reason": "r"})
        assert back.status_code == 422, "a pin never goes back"
