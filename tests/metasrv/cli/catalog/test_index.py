"""`metasrv index`: what is in the way of an index, and how far it has come."""

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

INDEXES = "/v1/catalogs/main/schemas/public/tables/t/indexes"


def test_given_rows_in_the_way_of_an_index_when_made_and_validated_then_they_are_shown(
    run: Run, rest: Rest
) -> None:
    index = {"id": 1, "name": "i", "columns": ["a"], "unique": True, "state": "write-only"}
    twice = {"total": 7, "first": [{"values": ["x"], "rows": [[41], [42]]}]}
    region = {"region_id": "4398046511104", "state": "violated"}
    counts = {"rows": 10, "rows_total": 20, "entries": 10}
    covered = {"procedure_id": "p-1", "regions": [region], **counts}
    rest.answers[("POST", INDEXES)] = (201, {**index, "duplicates": twice})
    rest.answers[("GET", f"{INDEXES}/i")] = (200, {**index, "coverage": covered})
    rest.answers[("POST", f"{INDEXES}/i/validate")] = (200, {**index, "state": "public"})
    at = ["--metasrv", rest.url]

    made = run("index", "create", "t", "i", "--column", "a", "--unique", "--not-valid", *at)
    shown = run("index", "get", "t", "i", *at)
    valid = run("index", "validate", "t", "i", *at)

    assert "7 values" in made.stdout
    assert "41, 42" in made.stdout
    assert "10 of about 20 rows" in shown.stdout
    assert "violated" in shown.stdout
    assert "public" in valid.stdout
