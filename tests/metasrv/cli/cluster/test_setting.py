"""`metasrv setting` and the switches of `metasrv cluster`: what they ask, and what they show."""

import json
from typing import Any

import pytest

from metasrv_base.errors import NotFound
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

SETTING: dict[str, Any] = {
    "name": "running_max",
    "value": 64,
    "version": 2,
    "default": None,
    "unit": "procedures",
    "meaning": "Changes that run at once.",
    "changed_by": "anna",
    "changed_at": "2026-01-01T00:00:00.000Z",
}


def test_given_a_setting_when_set_then_it_is_put_as_json_and_shown(run: Run, rest: Rest) -> None:
    rest.answers["PUT", "/v1/settings/running_max"] = (200, SETTING)

    done = run("setting", "set", "running_max", "64", "--metasrv", rest.url)
    bad = run("setting", "set", "running_max", "many", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert rest.asked[0].body == {"value": 64, "expected_version": None}
    assert "anna" in done.output
    assert bad.exit_code == 2
    assert len(rest.asked) == 1


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN", "[1, NaN]"])
def test_given_a_number_that_json_has_not_when_set_then_nothing_is_asked(
    run: Run, rest: Rest, value: str
) -> None:
    done = run("setting", "set", "running_max", value, "--metasrv", rest.url)

    assert (done.exit_code, rest.asked) == (2, [])
    assert "is not a number of JSON" in done.stderr


def test_given_a_setting_of_the_start_when_shown_then_no_null_stands_for_its_value(
    run: Run, rest: Rest
) -> None:
    rest.answers["GET", "/v1/settings/running_max"] = (200, {**SETTING, "value": None})

    text = run("setting", "get", "running_max", "--metasrv", rest.url)

    rows = [row.split(maxsplit=1) for row in text.stdout.splitlines()]
    assert ["value", "as started"] in rows
    assert ["default", "as started"] in rows


def test_given_settings_when_listed_then_a_line_for_each(run: Run, rest: Rest) -> None:
    rest.answers["GET", "/v1/settings"] = (200, {"settings": [SETTING]})

    text = run("setting", "list", "--metasrv", rest.url)
    document = run("setting", "list", "--json", "--metasrv", rest.url)

    assert "running_max  64" in text.output
    assert json.loads(document.output) == [SETTING]


def test_given_a_setting_that_was_never_set_when_listed_then_it_is_said_what_holds(
    run: Run, rest: Rest
) -> None:
    unset = {**SETTING, "value": None}
    rest.answers["GET", "/v1/settings"] = (200, {"settings": [unset]})

    text = run("setting", "list", "--metasrv", rest.url)

    assert "running_max  as started" in text.output


def test_given_maintenance_when_switched_on_then_reason_and_expiry_are_sent(
    run: Run, rest: Rest
) -> None:
    rest.answers["PUT", "/v1/cluster/maintenance"] = (
        200,
        {
            "enabled": True,
            "reason": "disks",
            "changed_by": "anna",
            "changed_at": "2026-01-01T00:00:00.000Z",
            "expires_at": "2026-01-01T01:00:00.000Z",
            "version": 1,
        },
    )

    words = ("cluster", "maintenance", "on", "--reason", "disks", "--expires-in", "3600")
    done = run(*words, "--metasrv", rest.url)

    assert rest.asked[0].body == {"enabled": True, "reason": "disks", "expires_in_s": 3600}
    assert "on until 2026-01-01T01:00:00.000Z since" in done.output
    assert done.output.endswith("by anna: disks\n")


def test_given_procedures_when_paused_then_the_reason_is_sent(run: Run, rest: Rest) -> None:
    paused = {
        "paused": True,
        "reason": "disks",
        "changed_by": "a",
        "changed_at": None,
        "version": 1,
    }
    rest.answers["PUT", "/v1/cluster/procedures"] = (200, paused)

    done = run("cluster", "pause", "on", "--reason", "disks", "--metasrv", rest.url)

    assert rest.asked[0].body == {"paused": True, "reason": "disks"}
    assert done.output == "procedures are paused: disks\n"


def test_given_a_negative_value_when_set_then_it_is_a_value_and_no_option(
    run: Run, rest: Rest
) -> None:
    rest.answers["PUT", "/v1/settings/running_max"] = (200, SETTING)

    done = run("setting", "set", "running_max", "-1", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert rest.asked[0].body == {"value": -1, "expected_version": None}


def test_given_a_setting_without_a_value_when_listed_then_its_default_is_shown(
    run: Run, rest: Rest
) -> None:
    unset = {**SETTING, "value": None, "default": 128}
    rest.answers["GET", "/v1/settings"] = (200, {"settings": [unset]})

    assert "128 (default)" in run("setting", "list", "--metasrv", rest.url).output


def test_given_a_setting_that_is_not_there_when_read_then_the_near_name_is_suggested(
    run: Run, rest: Rest
) -> None:
    rest.answers["GET", "/v1/settings"] = (200, {"settings": [SETTING]})
    rest.answers["GET", "/v1/settings/runing_max"] = NotFound(what="setting", name="runing_max")
    rest.answers["GET", "/v1/settings/colour"] = NotFound(what="setting", name="colour")

    near, far = (
        run("setting", "get", name, "--metasrv", rest.url) for name in ("runing_max", "colour")
    )

    assert (near.exit_code, far.exit_code) == (1, 1)
    assert "did you mean running_max?" in near.stderr
    assert "did you mean" not in far.stderr
