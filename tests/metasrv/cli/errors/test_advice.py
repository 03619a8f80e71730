"""Advice that can be followed by commands."""

import re
from typing import Any

import pytest
from typer.main import get_command

from metasrv.cli.errors.advice import ADVICE, EXISTING, LISTS, advice_of
from metasrv.cli.errors.problem_words import words
from metasrv.cli.main import COMMANDS, application
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused
from metasrv_base.wire.problem.problems import KINDS, problem_of

COMMAND = re.compile(r"`metasrv ([^`]*)`")
API_WORDS = re.compile(
    r"ETag|\bpass `|[Ss]end (it|the)|`PUT|`GET|if_not_exists|`(retry|force|lost)`"
)

FOLLOWED = [
    (Conflict("version-mismatch", expected=3, found=4), "give the version that it has now"),
    (Conflict("node-still-alive", node_id="dn-1"), "`metasrv node drain dn-1 --reason TEXT`"),
    (Conflict("node-in-use", node_id="dn-1", what="leads 1"), "`metasrv node drain dn-1 "),
    (Refused("invalid-schema-change", name="t", reason="no"), "`metasrv table get TABLE`"),
    (Conflict("action-not-allowed", procedure_id="p-7"), "`metasrv procedure get p-7`"),
    (NotFound(what="schema", name="sales.x"), "`metasrv schema list sales`"),
    (NotFound(what="row", name="9 in t", table="t"), "`metasrv scan t`"),
    (Conflict("already-exists", what="The row", name={"id": 1}), "`metasrv row upsert`"),
    (Conflict("already-exists", what="column", name="id"), "`metasrv table get TABLE`"),
]


@pytest.mark.parametrize(("error", "advice"), FOLLOWED, ids=range(len(FOLLOWED)))
def test_given_an_error_then_its_advice_is_a_command_with_the_names_it_has(
    error: MetaError, advice: str
) -> None:
    assert advice in advice_of(error)


@pytest.mark.parametrize("code", KINDS)
def test_given_any_problem_then_its_advice_has_no_words_of_the_api(code: str) -> None:
    assert API_WORDS.findall(advice_of(KINDS[code].error(code))) == []


def test_every_command_that_is_advised_exists_with_its_options() -> None:
    app = get_command(application([name for name, _, _ in COMMANDS]))
    advised = [*ADVICE.values(), *LISTS.values(), *EXISTING.values()]
    commands = [match for text in advised for match in COMMAND.findall(text)]

    for text in commands:
        parts = text.split()
        command: Any = app
        while getattr(command, "commands", None) and parts:
            command = command.commands[parts.pop(0)]
        options = {name for param in command.params for name in param.opts}
        assert {part for part in parts if part.startswith("-")} <= options, text
    assert len(commands) > 20


def test_given_a_reason_that_is_a_question_then_no_full_stop_follows() -> None:
    error = Refused("invalid-schema-change", reason="there is no nam; did you mean name?")

    assert problem_of(error, "", "")[2]["detail"] == "there is no nam; did you mean name?"


def test_given_one_row_then_it_is_counted_as_one() -> None:
    told = list(words(Refused("invalid-request", reason="bad", rows=1)))

    assert "  1 row was loaded before that" in told


def test_given_no_restored_cluster_when_a_node_is_adopted_then_advice_can_be_followed() -> None:
    error = Conflict("action-not-allowed", action="adopt", state="it is none of a backup")

    assert advice_of(error).startswith("start the node with the URL of this service")
