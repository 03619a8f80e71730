"""`catalog alter`: settings and limits as words, sent as they are named."""

import pytest

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

ACME = "/v1/catalogs/acme"
BODY = {
    "id": 7,
    "name": "acme",
    "options": {},
    "created_at": "2026-01-01T00:00:00Z",
    "catalog_version": 9,
}


def test_given_limits_and_settings_when_altered_then_they_are_sent_and_shown(
    run: Run, rest: Rest
) -> None:
    rest.answers[("PATCH", ACME)] = (200, {**BODY, "limits": {"tables": 5}})

    done = run(
        *["catalog", "alter", "acme", "--limit", "tables=5", "--limit", "regions=null"],
        *["--set", "drop_retention_ms=60000", "--metasrv", rest.url],
    )

    assert done.exit_code == 0, done.output
    assert rest.asked[0].body == {
        "settings": {"drop_retention_ms": 60_000},
        "limits": {"tables": 5, "regions": None},
    }
    assert "tables" in done.stdout


def test_given_no_catalog_when_altered_if_it_exists_then_a_miss_is_a_success(
    run: Run, rest: Rest
) -> None:
    rest.answers[("PATCH", ACME)] = (204, b"")
    rest.headers["catalog-applied"] = "false"

    done = run(
        *["catalog", "alter", "acme", "--limit", "tables=5", "--if-exists"],
        *["--metasrv", rest.url],
    )

    assert (done.exit_code, rest.asked[0].body["if_exists"]) == (0, True)
    assert "acme" in done.output


@pytest.mark.parametrize("words", [[], ["--limit", "tables"], ["--limit", "a=1", "--limit", "a=2"]])
def test_given_words_that_name_nothing_when_altered_then_nothing_is_sent(
    run: Run, rest: Rest, words: list[str]
) -> None:
    done = run("catalog", "alter", "acme", *words, "--metasrv", rest.url)

    assert (done.exit_code, rest.asked) == (2, [])
