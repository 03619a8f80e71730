"""`metasrv placement alter` on the version that it has read, and the zones that `list` shows."""

from typing import Any

import pytest

from metasrv_base.errors import Conflict, NotFound
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

FAST = "/v1/placements/fast"
BODY: dict[str, Any] = {
    "id": 1025,
    "name": "fast",
    "version": 4,
    "replicas": 3,
    "partitions": 2,
    "storage_profiles": [{"name": "hot", "engine": "memory", "options": {}}],
    "node_filter": {"zones": ["z1", "z2"], "labels": [{"label": "disk", "in": ["ssd", "nvme"]}]},
    "preferred_zones": ["z2", "z1"],
    "comment": None,
    "created_at": "2026-01-01T00:00:00Z",
    "catalog_version": 9,
}
PLAIN: dict[str, Any] = {
    **BODY,
    "id": 1024,
    "name": "plain",
    "node_filter": {"zones": [], "labels": []},
    "preferred_zones": [],
}


def sent(rest: Rest) -> list[str | None]:
    """The If-Match of each change."""
    return [one.if_match for one in rest.asked if one.method == "PATCH"]


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        (["--zone", "z3"], '"p1025-4"'),
        (["--label", "disk=hdd"], '"p1025-4"'),
        (["--zone", "z3", "--if-match", "4"], '"p1025-4"'),
        (["--replicas", "2", "--if-match", "3"], '"p1025-3"'),
        (["--zone", "z3", "--label", "disk=hdd"], None),
        (["--any-node"], None),
        (["--replicas", "2"], None),
    ],
)
def test_given_an_alter_of_what_was_read_then_it_is_on_that_version_alone(
    run: Run, rest: Rest, words: list[str], condition: str | None
) -> None:
    rest.answers[("GET", FAST)] = rest.answers[("PATCH", FAST)] = (200, BODY)

    done = run("placement", "alter", "fast", *words, "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert sent(rest) == [condition]


def test_given_a_placement_that_another_alters_meanwhile_then_nothing_is_sent_twice(
    run: Run, rest: Rest
) -> None:
    rest.answers[("GET", FAST)] = (200, BODY)
    rest.answers[("PATCH", FAST)] = Conflict(
        "version-mismatch", name="fast", expected='"p1025-4"', found='"p1025-5"'
    )

    done = run("placement", "alter", "fast", "--zone", "z3", "--metasrv", rest.url)

    assert done.exit_code == 1
    assert '"p1025-5"' in done.stderr
    assert "look at the object again" in done.stderr
    assert sent(rest) == ['"p1025-4"']


def test_given_another_version_than_required_when_half_a_filter_is_altered_then_nothing_is_sent(
    run: Run, rest: Rest
) -> None:
    """The other half is of the version that was read: no other may be altered by it."""
    rest.answers[("GET", FAST)] = (200, BODY)

    words = ["--zone", "z3", "--if-match", "5"]
    done = run("placement", "alter", "fast", *words, "--metasrv", rest.url)

    assert done.exit_code == 1
    assert "Required version 5, found version 4." in done.stderr
    assert sent(rest) == []


def test_given_no_placement_when_a_version_is_required_then_it_is_no_miss(
    run: Run, rest: Rest
) -> None:
    rest.answers[("GET", FAST)] = NotFound(what="placement", name="fast")
    words = ["--replicas", "2", "--if-exists", "--if-match", "5"]

    done = run("placement", "alter", "fast", *words, "--metasrv", rest.url)

    assert done.exit_code == 1
    assert sent(rest) == []


def test_given_placements_then_their_zones_and_preferred_zones_are_shown(
    run: Run, rest: Rest
) -> None:
    page = {"placements": [BODY, PLAIN], "catalog_version": 9, "next_page_token": None}
    rest.answers[("GET", "/v1/placements")] = (200, page)
    rest.answers[("GET", FAST)] = (200, BODY)

    head, first, second = run("placement", "list", "--metasrv", rest.url).stdout.splitlines()
    shown = run("placement", "get", "fast", "--metasrv", rest.url).stdout

    columns = "id placement replicas partitions profiles zones labels preferred zones"
    assert head.split() == columns.split()
    assert "".join(first.split()) == "1025fast32hot:memoryz1,z2disk=ssd,nvmez2,z1"
    assert second.split() == ["1024", "plain", "3", "2", "hot:memory", "any", "any", "none"]
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert facts["zones"] == "z1, z2"
    assert facts["labels"] == "disk=ssd,nvme"
    assert facts["preferred_zones"] == "z2, z1"
