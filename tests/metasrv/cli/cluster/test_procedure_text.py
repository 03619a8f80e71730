"""Procedures as lists and facts for people."""

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure


def test_given_a_procedure_of_an_index_then_its_list_and_its_facts_name_it(
    run: Run, rest: Rest
) -> None:
    made = procedure(id="018f", kind="create_index", change="by_name")
    rest.answers["GET", "/v1/procedures"] = (200, {"procedures": [made, procedure(id="018e")]})
    rest.answers["GET", "/v1/procedures/018f"] = (200, made)

    listed = run("procedure", "list", "--metasrv", rest.url)
    facts = run("procedure", "get", "018f", "--metasrv", rest.url)

    assert "create_index  main.public.t by_name  running" in listed.stdout
    assert "create_table  main.public.t          running" in listed.stdout
    assert ["change", "by_name"] in [row.split() for row in facts.stdout.splitlines()]
