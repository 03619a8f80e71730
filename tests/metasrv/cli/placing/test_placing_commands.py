"""`rename`, `drop` and `get` of placements and of tablespaces: one code, two kinds of object."""

from dataclasses import dataclass
from typing import Any

import pytest

from metasrv_base.errors import NotFound
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

PLACEMENT: dict[str, Any] = {
    "id": 1025,
    "name": "fast",
    "version": 1,
    "replicas": 1,
    "partitions": 1,
    "storage_profiles": [{"name": "hot", "engine": "memory", "options": {}}],
    "node_filter": {"zones": ["z1"], "labels": []},
    "comment": None,
    "created_at": "2026-01-01T00:00:00Z",
    "catalog_version": 9,
}
TABLESPACE: dict[str, Any] = {
    "id": 1026,
    "catalog": "main",
    "name": "fast",
    "version": 1,
    "comment": None,
    "created_at": "2026-01-01T00:00:00Z",
    "catalog_version": 9,
}


@dataclass(frozen=True, slots=True)
class Kind:
    word: str
    path: str
    body: dict[str, Any]
    within: str = ""
    """Stands before the name of one."""


KINDS = [
    Kind("placement", "/v1/placements/fast", PLACEMENT),
    Kind("tablespace", "/v1/catalogs/main/tablespaces/fast", TABLESPACE, "main."),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
def test_given_an_object_when_renamed_got_and_dropped_then_its_name_is_told(
    run: Run, rest: Rest, kind: Kind
) -> None:
    there, word = kind.path, kind.word
    rest.answers[("POST", f"{there}/rename")] = (200, {**kind.body, "name": "quick"})
    rest.answers[("GET", there)] = (200, kind.body)
    rest.answers[("DELETE", there)] = (204, b"")

    renamed = run(word, "rename", "fast", "quick", "--metasrv", rest.url)
    shown = run(word, "get", "fast", "--metasrv", rest.url)
    dropped = run(word, "drop", "fast", "--metasrv", rest.url)

    assert renamed.stdout == f"fast is {kind.within}quick now\n"
    assert rest.asked[0].body["new_name"] == "quick"
    assert "1025" in shown.stdout or "1026" in shown.stdout
    assert dropped.stdout == "fast dropped\n"


def test_given_preferred_zones_then_they_are_sent_in_order_and_shown(run: Run, rest: Rest) -> None:
    preferring = {**PLACEMENT, "preferred_zones": ["z2", "z1"]}
    rest.answers[("POST", "/v1/placements")] = (201, preferring)
    rest.answers[("PATCH", "/v1/placements/fast")] = (200, preferring)
    rest.answers[("GET", "/v1/placements/fast")] = (200, preferring)
    zones = ["--prefer-zone", "z2", "--prefer-zone", "z1"]

    made = run("placement", "create", "fast", *zones, "--metasrv", rest.url)
    altered = run("placement", "alter", "fast", *zones, "--metasrv", rest.url)
    dropped = run("placement", "alter", "fast", "--any-zone", "--metasrv", rest.url)
    both = run("placement", "alter", "fast", "--any-zone", *zones, "--metasrv", rest.url)
    shown = run("placement", "get", "fast", "--metasrv", rest.url)

    assert [made.exit_code, altered.exit_code, dropped.exit_code, both.exit_code] == [0, 0, 0, 2]
    sent = [one.body.get("preferred_zones") for one in rest.asked if one.method != "GET"]
    assert sent == [["z2", "z1"], ["z2", "z1"], []]
    assert "z2, z1" in shown.stdout


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
@pytest.mark.parametrize("words", [["drop", "fast"], ["rename", "fast", "quick"]])
def test_given_none_of_that_name_when_changed_if_it_exists_then_a_miss_is_a_success(
    run: Run, rest: Rest, kind: Kind, words: list[str]
) -> None:
    there = kind.path
    rest.answers[("DELETE", there)] = rest.answers[("POST", f"{there}/rename")] = (204, b"")
    rest.headers["catalog-applied"] = "false"

    done = run(kind.word, *words, "--if-exists", "--metasrv", rest.url)

    assert (done.exit_code, done.stdout) == (0, "fast does not exist; nothing changed\n")


ON_SSD = {"label": "disk", "in": ["ssd"]}


@pytest.mark.parametrize(
    ("words", "filter_sent"),
    [
        (["--zone", "z2"], {"zones": ["z2"], "labels": [{**ON_SSD, "equals": None}]}),
        (["--label", "disk=hdd"], {"zones": ["z1"], "labels": [{"label": "disk", "in": ["hdd"]}]}),
        (["--zone", "z2", "--label", "disk=ssd"], {"zones": ["z2"], "labels": [ON_SSD]}),
        (["--any-node"], {"zones": [], "labels": []}),
        (["--replicas", "2"], None),
    ],
)
def test_given_a_node_filter_when_one_half_is_altered_then_the_other_is_sent_as_it_is(
    run: Run, rest: Rest, words: list[str], filter_sent: dict[str, Any] | None
) -> None:
    node_filter = {"zones": ["z1"], "labels": [{**ON_SSD, "equals": None}]}
    body = {**PLACEMENT, "node_filter": node_filter}
    rest.answers[("GET", "/v1/placements/fast")] = (200, body)
    rest.answers[("PATCH", "/v1/placements/fast")] = (200, body)

    done = run("placement", "alter", "fast", *words, "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert rest.asked[-1].body.get("node_filter") == filter_sent


def test_given_no_placement_when_its_zones_are_altered_if_it_exists_then_a_miss_is_a_success(
    run: Run, rest: Rest
) -> None:
    rest.answers[("GET", "/v1/placements/fast")] = NotFound(what="placement", name="fast")
    rest.answers[("PATCH", "/v1/placements/fast")] = (204, b"")
    rest.headers["catalog-applied"] = "false"
    words = ["placement", "alter", "fast", "--zone", "z2", "--metasrv", rest.url]

    done = run(*words, "--if-exists")
    missed = run(*words)

    assert (done.exit_code, done.stdout) == (0, "fast does not exist; nothing changed\n")
    assert missed.exit_code == 1
