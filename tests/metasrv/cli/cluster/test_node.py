"""`metasrv node decommission` and `release`, and `metasrv table purge`, as a user types them."""

import json
from typing import Any

import pytest

from tests.metasrv.cli.answers import NODE
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

PATH = "/v1/nodes/dn-2/decommission"


@pytest.mark.parametrize("dry", [True, False])
def test_given_a_node_when_decommissioned_then_it_says_so(rest: Rest, run: Run, dry: bool) -> None:
    rest.answers["POST", PATH] = (200, NODE)
    rest.answers["GET", "/v1/nodes/dn-2"] = (200, {**NODE, "regions": []})
    words = ["node", "decommission", "dn-2", "--lost", "--reason", "sold", "--metasrv", rest.url]

    done = run(*words, *(["--dry-run"] if dry else []))

    assert done.exit_code == 0, done.output
    assert f"dn-2 {'would be' if dry else 'is'} removed: sold" in done.output
    asked, *after = rest.asked
    assert asked.path == (f"{PATH}?dry_run=true" if dry else PATH)
    assert asked.body == {"reason": "sold", "lost": True}
    assert [one.path for one in after] == ([] if dry else ["/v1/nodes/dn-2"])


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["1027"], {"table_id": 1027, "table": None}),
        (["t"], {"table_id": None, "table": "main.public.t"}),
    ],
)
def test_given_a_dropped_table_when_purged_by_id_or_name_then_it_is_named(
    rest: Rest, run: Run, words: list[str], body: dict[str, Any]
) -> None:
    rest.answers["POST", "/v1/purges"] = (204, None)
    rest_of = ["--reason", "its node leaves", "--metasrv", rest.url]

    done = run("table", "purge", *words, *rest_of)
    as_json = run("table", "purge", *words, *rest_of, "--json")

    assert (done.exit_code, as_json.exit_code) == (0, 0), done.output
    assert done.stdout == f"{words[0]} is purged\n"
    assert json.loads(as_json.stdout) == {"purged": words[0]}
    asked, _ = rest.asked
    assert asked.body == {**body, "reason": "its node leaves"}


def test_given_a_returned_node_when_released_then_its_quarantine_ends(rest: Rest, run: Run) -> None:
    rest.answers["POST", "/v1/nodes/dn-2/release"] = (200, {**NODE, "state": "alive"})

    done = run("node", "release", "dn-2", "--reason", "nobody needs it", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert "dn-2 is in no quarantine" in done.output
    (asked,) = rest.asked
    assert asked.body == {"reason": "nobody needs it"}


def test_given_labels_when_changed_then_a_word_sets_one_and_a_dash_removes_one(
    rest: Rest, run: Run
) -> None:
    labels = {"disk": "ssd", "zone-of": "a=b"}
    rest.answers["PATCH", "/v1/nodes/dn-2"] = (200, {**NODE, "labels": labels})
    words = ["node", "label", "dn-2", "--metasrv", rest.url, "--"]

    done = run(*words, "disk=ssd", "zone-of=a=b", "rack-")
    wrong = run(*words, "disk")
    twice = run(*words, "disk=ssd", "disk-")

    assert done.exit_code == 0, done.output
    assert "dn-2: disk=ssd, zone-of=a=b" in done.output
    (asked,) = rest.asked
    assert asked.body == {"labels": {"disk": "ssd", "zone-of": "a=b", "rack": None}}
    assert (wrong.exit_code, twice.exit_code) == (2, 2)
    assert "disk is named twice" in twice.output


def test_given_nodes_when_filtered_then_only_those_are_listed(rest: Rest, run: Run) -> None:
    dead = {**NODE, "id": "dn-3", "state": "dead"}
    far = {**NODE, "id": "dn-4", "state": "dead", "zone": "far"}
    rest.answers["GET", "/v1/nodes"] = (200, {"nodes": [NODE, dead, far]})
    words = ["node", "list", "--metasrv", rest.url]

    by_state = run(*words, "--state", "dead", "--zone", "z")
    wrong = run(*words, "--state", "ded")

    assert "dn-3" in by_state.stdout
    assert not {"dn-2", "dn-4"} & set(by_state.stdout.split())
    assert (wrong.exit_code, "did you mean dead?" in wrong.stderr) == (2, True)


def test_given_regions_when_filtered_then_the_service_is_asked_for_those(
    rest: Rest, run: Run
) -> None:
    rest.answers["GET", "/v1/regions"] = (200, {"regions": [], "catalog_version": 1})
    rest.answers["GET", "/v1/nodes/dn-2"] = (200, {**NODE, "regions": []})

    shown = run("region", "list", "--node", "dn-2", "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert "node=dn-2" in rest.asked[0].path


def test_given_a_kind_that_is_none_when_listed_then_the_near_one_is_named(
    rest: Rest, run: Run
) -> None:
    shown = run("procedure", "list", "--kind", "create_tabel", "--metasrv", rest.url)

    assert (shown.exit_code, rest.asked) == (2, [])
    assert "did you mean create_table?" in shown.stderr


def test_given_pages_of_folders_when_orphans_are_listed_then_each_has_its_proof(
    run: Run, rest: Rest
) -> None:
    folder = {"root": "/d/9-1", "region_id": "9", "epoch": 1, "fenced_at": None}
    orphan, waiting = {"proof": "no-table", "wait": None}, {"proof": None, "wait": "young"}
    page: dict[str, object] = {"node_id": "dn-1", "catalog_version": 4}
    first = {**page, "folders": [folder | orphan], "next": "10"}
    held = {
        "root": "/d/8-1",
        "path": "/q/8-1@7",
        "region_id": "8",
        "quarantined_at": "2026-01-01T00:00:00Z",
        "deleted_after": "2026-01-02T00:00:00Z",
        "bytes": 70_001,
    }
    kept = held | {"proof": None, "wait": "claimed"}
    last = {**page, "folders": [folder | waiting], "quarantined": [held | orphan, kept]}

    def turn(method: str, path: str) -> None:
        shown = last if path.endswith("?first=10") else first
        rest.answers["GET", "/v1/nodes/dn-1/orphans"] = (200, shown)

    rest.on_request = turn

    done = run("node", "orphans", "dn-1", "--metasrv", rest.url)
    listed = run("node", "orphans", "dn-1", "--json", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert "no-table" in done.output
    assert "waits: young" in done.output
    assert "2026-01-02T00:00:00Z" in done.output
    assert "70001" in done.output.replace(",", "").replace(" ", "")
    assert "stays: claimed" in done.output
    told = [folder | orphan, folder | waiting, held | orphan, kept]
    assert json.loads(listed.output) == told
