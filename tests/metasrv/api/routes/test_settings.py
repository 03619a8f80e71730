"""Settings, maintenance and the pause of all procedures over HTTP, and what a new leader makes of
them."""

from typing import Any

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv.settings.settings import SettingsStore, read_settings
from metasrv.settings.tunables import Pause
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, beat, follower_of, leader, spec

HOUR_S = 3_600


async def put(one: Server, name: str, value: object, **more: Any) -> Any:
    return await one.client.put(f"/v1/settings/{name}", json={"value": value, **more})


async def test_given_a_fresh_cluster_when_listed_then_each_setting_shows_its_default() -> None:
    async with leader(nodes=0) as one:
        listed = (await one.client.get("/v1/settings")).json()["settings"]

        assert [setting["name"] for setting in listed] == sorted(s["name"] for s in listed)
        assert all(setting["value"] == setting["default"] for setting in listed)
        assert all(setting["version"] == 0 and setting["meaning"] for setting in listed)
        kept = next(setting for setting in listed if setting["name"] == "drop_retention_ms")
        assert (kept["default"], kept["unit"]) == (7 * 86_400_000, "ms")


async def test_given_a_setting_when_put_then_it_is_versioned_and_says_who() -> None:
    async with leader(nodes=1) as one:
        before = one.term.nodes.heartbeat(beat("dn-1", 2)).settings_version
        first = await put(one, "running_max", 7)
        again = await put(one, "running_max", 7)
        late = await put(one, "running_max", 9, expected_version=0)
        second = await put(one, "running_max", 9, expected_version=1)

        assert (first.status_code, first.json()["version"]) == (200, 1)
        assert again.json() == first.json()
        assert (late.status_code, late.json()["code"]) == (412, "version-mismatch")
        assert (second.json()["value"], second.json()["version"]) == (9, 2)
        assert second.json()["changed_by"] == "anonymous"
        after = one.term.nodes.heartbeat(beat("dn-1", 3)).settings_version
        assert after == before + 2


async def test_given_a_width_of_reorgs_when_put_then_the_next_round_has_it() -> None:
    async with leader(nodes=0) as one:
        width = one.term.ports.reorg_width

        await put(one, "reorg_jobs_max", 2)
        await put(one, "reorg_regions_max", 8)

        assert (width.jobs, width.regions) == (2, 8)


@pytest.mark.parametrize(
    ("name", "value", "pointer"),
    [
        ("running_max", "7", "/value"),
        ("running_max", True, "/value"),
        ("running_max", 0, "/value"),
        ("reorg_jobs_max", 65, "/value"),
        ("reorg_regions_max", 0, "/value"),
        ("phi_threshold", 301, "/value"),
        ("maintenance", {"enabled": 1}, "/value/enabled"),
        ("maintenance", {"since": "now"}, "/value/since"),
    ],
)
async def test_given_a_wrong_value_when_put_then_422_points_at_it(
    name: str, value: object, pointer: str
) -> None:
    async with leader(nodes=0) as one:
        answer = await put(one, name, value)

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        assert (await one.client.get(f"/v1/settings/{name}")).json()["version"] == 0


async def test_given_an_unknown_setting_when_asked_for_then_404() -> None:
    async with leader(nodes=0) as one:
        read = await one.client.get("/v1/settings/colour")
        written = await put(one, "colour", "red")

        assert (read.status_code, written.status_code) == (404, 404)


@pytest.mark.case("greptime 66")
async def test_given_maintenance_with_expiry_when_it_has_passed_then_it_is_off_by_itself() -> None:
    async with leader(nodes=0) as one:
        body = {"enabled": True, "reason": "disks", "expires_in_s": HOUR_S}
        on = (await one.client.put("/v1/cluster/maintenance", json=body)).json()
        held = one.term.settings.maintenance
        one.clock.ahead_ms += HOUR_S * 1000

        off = (await one.client.get("/v1/cluster/maintenance")).json()

        assert (on["enabled"], on["reason"], on["changed_by"]) == (True, "disks", "anonymous")
        assert on["expires_at"] == off["expires_at"] is not None
        assert held is not None
        assert off["enabled"] is False
        assert one.term.settings.maintenance is None


@pytest.mark.case("greptime 66")
async def test_given_maintenance_when_set_read_and_unset_then_each_reader_sees_it() -> None:
    async with leader(nodes=0) as one:
        path, seen = "/v1/cluster/maintenance", []
        for enabled in (True, False, True):
            await one.client.put(path, json={"enabled": enabled})
            seen.append((await one.client.get(path)).json()["enabled"])

    assert seen == [True, False, True]


async def test_given_settings_when_another_leads_then_it_has_them_before_it_begins() -> None:
    async with leader(nodes=0) as one, follower_of(one) as other:
        await one.client.put("/v1/cluster/maintenance", json={"enabled": True})
        await put(other, "flapping_returns", 5)  # passed on to the leader
        told: list[int] = []

        settings = SettingsStore(one.kv, one.term.committer, one.clock, DEADLINE_MS)
        await settings.load()
        settings.listen(lambda values: told.append(values.flapping_returns))

        assert settings.maintenance is not None
        assert told == [5]
        assert settings.version == one.term.settings.version == 2
        assert (await read_settings(one.kv, deadline_ms=DEADLINE_MS)) == settings.stored


async def test_given_a_setting_of_the_detector_when_put_then_it_holds_until_null() -> None:
    async with leader(nodes=1) as one:
        detector = one.term.nodes.entry("dn-1").detector
        before = detector.config.threshold
        await put(one, "phi_threshold", 3.5)
        changed = detector.config.threshold
        await put(one, "phi_threshold", None)

        assert (changed, detector.config.threshold) == (3.5, before)


async def test_given_a_full_queue_by_setting_then_429_until_it_is_raised() -> None:
    async with leader() as one:
        one.nodes.gate.clear()
        await put(one, "queue_max", 1)

        first = await one.client.post(TABLES, json=spec("a"))
        refused = await one.client.post(TABLES, json=spec("b"))
        await put(one, "queue_max", None)
        taken = await one.client.post(TABLES, json=spec("b"))

        assert [a.status_code for a in (first, refused, taken)] == [202, 429, 202]
        one.nodes.gate.set()


async def test_given_paused_procedures_then_they_wait_for_maintenance_until_they_go_on() -> None:
    async with leader() as one:
        pause = {"paused": True, "reason": "backup"}
        await one.client.put("/v1/cluster/procedures", json=pause)
        made = (await one.client.post(TABLES, json=spec())).json()
        path = f"/v1/procedures/{made['id']}"
        held = (await one.client.get(path)).json()
        asked = list(one.nodes.asked)

        await one.client.put("/v1/cluster/procedures", json={"paused": False})
        done = await one.term.manager.wait(made["id"], deadline_ms=10_000)

        assert [(w["kind"], w["holder"]) for w in held["waiting_for"]] == [
            ("maintenance", "backup")
        ]
        assert asked == []
        assert isinstance(done, ProcedureHistory)
        assert done.outcome is ProcedureOutcome.SUCCEEDED


def test_given_pauses_then_their_lengths_add_up_and_a_new_reason_begins_none() -> None:
    first = Pause(paused=True, reason="backup").after(Pause(), 1_000)
    again = Pause(paused=True, reason="a longer backup").after(first, 3_000)
    opened = Pause().after(again, 5_000)
    second = Pause(paused=True).after(opened, 10_000)

    assert (first.since_ms, again.since_ms) == (1_000, 1_000)
    assert (opened.since_ms, opened.stood_ms) == (None, 4_000)
    assert Pause().after(second, 11_000).stood_ms == 5_000
    assert Pause(stood_ms=99).after(opened, 12_000) == opened


async def test_given_what_an_operator_switched_off_when_measured_then_the_metrics_say_so() -> None:
    async with leader() as one:
        await one.client.put("/v1/cluster/maintenance", json={"enabled": True})
        await one.client.put("/v1/cluster/procedures", json={"paused": True})
        await one.client.post("/v1/nodes/dn-1/cordon", json={"reason": "a new disk"})
        await one.client.post(TABLES, json=spec())

        said = (await one.client.get("/metrics")).text

        assert "metasrv_maintenance 1.0" in said
        assert "metasrv_procedures_paused 1.0" in said
        assert "metasrv_nodes_cordoned 1.0" in said
        assert 'metasrv_procedures_running{kind="create_table"} 1.0' in said
        assert 'metasrv_procedures_waiting{reason="maintenance"} 1.0' in said
        assert 'metasrv_procedures_waiting{reason="throttle"} 0.0' in said


async def test_given_a_setting_with_a_default_when_put_to_null_then_it_has_that_again() -> None:
    async with leader() as one:
        path = "/v1/settings/reorg_regions_max"
        default = (await one.client.get(path)).json()["default"]
        await one.client.put(path, json={"value": 3})

        again = await one.client.put(path, json={"value": None})

        assert (again.status_code, again.json()["value"]) == (200, default)
