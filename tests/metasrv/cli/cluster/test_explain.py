"""`metasrv explain --proof`: the pair table, for people and for programs."""

import json

from metasrv_base.elements.graphs import GRAPHS
from metasrv_base.elements.proof.pairs import check_pairs
from tests.metasrv.cli.conftest import Run


def test_given_no_server_when_the_proof_is_asked_for_then_every_pair_of_states_is_judged(
    run: Run,
) -> None:
    done = run("explain", "--proof")

    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if " + " in line]
    assert len(lines) == sum(len(check_pairs(graph)) for graph in GRAPHS.values())
    assert any(
        line.startswith("index") and "delete-only + public" in line and "missing at public" in line
        for line in lines
    )
    assert "not proved" not in done.output


def test_given_no_server_when_asked_for_json_then_the_graphs_come_with_their_proof(
    run: Run,
) -> None:
    done = run("explain", "--proof", "--json")

    found = json.loads(done.output)
    assert [one["element"] for one in found] == list(GRAPHS)
    assert all(one["proved"] for one in found)
    unsafe = [pair["states"] for pair in found[0]["pairs"] if not pair["holds"]]
    assert unsafe == [
        ["absent", "write-only"],
        ["absent", "public"],
        ["delete-only", "public"],
    ]


def test_given_nothing_to_explain_when_called_then_it_says_how(run: Run) -> None:
    done = run("explain")

    assert done.exit_code == 2
    assert "--proof" in done.output
