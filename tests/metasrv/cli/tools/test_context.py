"""`metasrv context`, and which service a command asks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from metasrv.cli.main import application, command_word
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest, serving

CATALOGS = ("GET", "/v1/catalogs")


@pytest.fixture
def other() -> Iterator[Rest]:
    with serving() as other:
        yield other


@pytest.fixture
def services(rest: Rest, other: Rest) -> tuple[Rest, Rest]:
    for service in (rest, other):
        service.answers[CATALOGS] = (200, {"catalogs": [], "catalog_version": 1})
    return rest, other


def in_context(name: str, *words: str) -> Result:
    return CliRunner().invoke(application([words[0]]), ["--context", name, *words])


def asked(services: tuple[Rest, Rest]) -> list[int]:
    return [
        sum(request.path.startswith("/v1/catalogs") for request in each.asked) for each in services
    ]


def test_given_a_context_in_use_when_a_command_names_no_service_then_it_is_asked(
    run: Run, services: tuple[Rest, Rest]
) -> None:
    made = run("context", "set", "dev", "--metasrv", services[0].url, "--use")

    assert made.stdout == f"context dev is {services[0].url}\n"
    assert run("catalog", "list").exit_code == 0
    assert asked(services) == [1, 0]


@pytest.mark.parametrize("over", ["flag", "url variable", "context variable", "context flag"])
def test_given_a_context_in_use_then_what_is_said_for_one_command_goes_before_it(
    run: Run, services: tuple[Rest, Rest], over: str
) -> None:
    first, second = services
    run("context", "set", "dev", "--metasrv", first.url, "--use")
    run("context", "set", "prod", "--metasrv", second.url)

    match over:
        case "flag":
            done = run("catalog", "list", "--metasrv", second.url)
        case "url variable":
            done = run("catalog", "list", METASRV_URL=second.url)
        case "context variable":
            done = run("catalog", "list", METASRV_CONTEXT="prod")
        case _:
            done = in_context("prod", "catalog", "list")

    assert done.exit_code == 0, done.output
    assert asked(services) == [0, 1]


def test_given_a_variable_with_a_url_when_a_context_is_named_then_the_context_is_asked(
    run: Run, services: tuple[Rest, Rest], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("context", "set", "prod", "--metasrv", services[1].url)
    monkeypatch.setenv("METASRV_URL", services[0].url)

    assert in_context("prod", "catalog", "list").exit_code == 0
    assert asked(services) == [0, 1]


def test_given_tokens_of_the_variable_and_of_a_context_then_each_service_is_shown_its_own(
    run: Run, services: tuple[Rest, Rest], tmp_path: Path
) -> None:
    first, second = services
    file = tmp_path / "token"
    file.write_text("b" * 43 + "\n")
    file.chmod(0o600)
    run("context", "set", "prod", "--metasrv", second.url, "--token-file", str(file))
    run("context", "set", "open", "--metasrv", second.url)

    run("catalog", "list", METASRV_TOKEN="a" * 43, METASRV_URL=first.url)
    run("catalog", "list", METASRV_TOKEN="a" * 43, METASRV_CONTEXT="prod")
    run("catalog", "list", METASRV_TOKEN="a" * 43, METASRV_CONTEXT="open")

    shown = [
        [request.bearer for request in service.asked if "catalogs" in request.path]
        for service in services
    ]
    assert shown == [[f"Bearer {'a' * 43}"], [f"Bearer {'b' * 43}", None]]


def test_given_contexts_then_they_are_listed_with_a_mark_at_the_one_in_use(run: Run) -> None:
    run("context", "set", "dev", "--metasrv", "127.0.0.1:1")
    run("context", "set", "prod", "--metasrv", "https://m.example", "--use")

    assert run("context", "list").stdout.splitlines() == [
        "   context  metasrv             token file",
        "   dev      http://127.0.0.1:1  -",
        "*  prod     https://m.example   -",
    ]
    assert run("context", "list", "-o", "name").stdout == "dev\nprod\n"
    assert json.loads(run("context", "get", "--json").stdout) == {
        "name": "prod",
        "metasrv": "https://m.example",
        "token_file": None,
        "used": True,
    }


def test_given_a_context_when_set_again_then_what_is_not_said_stays(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("b" * 43)
    file.chmod(0o600)
    run("context", "set", "dev", "--metasrv", "127.0.0.1:1", "--token-file", str(file))

    run("context", "set", "dev", "--metasrv", "127.0.0.1:2")

    shown = json.loads(run("context", "get", "dev", "--json").stdout)
    assert (shown["metasrv"], shown["token_file"]) == ("http://127.0.0.1:2", str(file))


def test_given_a_context_when_removed_then_it_is_gone_and_none_is_used(run: Run) -> None:
    run("context", "set", "dev", "--metasrv", "127.0.0.1:1", "--use")

    assert run("context", "remove", "dev").stdout == "context dev removed\n"
    assert run("context", "get").exit_code == 2
    assert run("catalog", "list").exit_code == 2


def test_given_the_variable_when_another_context_is_used_then_it_is_told(run: Run) -> None:
    run("context", "set", "dev", "--metasrv", "127.0.0.1:1")

    shown = run("context", "use", "dev", METASRV_CONTEXT="prod")

    assert shown.stdout == "context dev is used; METASRV_CONTEXT=prod goes before it here\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "dev"], "there is no context dev yet"),
        (["set", "dev", "--metasrv", "ftp://x"], "is not a URL"),
        (["set", "a b", "--metasrv", "127.0.0.1:1"], "is no name"),
        (["set", "dev", "--metasrv", "127.0.0.1:1", "--token-file", "/nowhere"], "cannot be read"),
        (["use", "dev"], "there is no context dev"),
        (["use"], "name a context, or say --none"),
        (["get"], "no context is used"),
        (["remove", "dev"], "there is no context dev"),
    ],
)
def test_given_words_that_make_no_context_then_they_are_refused_with_2(
    run: Run, words: list[str], message: str
) -> None:
    shown = run("context", *words)

    assert shown.exit_code == 2
    assert message in " ".join(shown.stderr.replace("│", " ").split())
    assert run("context", "list", "-o", "name").stdout == ""


def test_given_a_context_that_is_not_there_when_a_command_is_run_then_it_ends_with_2(
    run: Run,
) -> None:
    shown = run("catalog", "list", METASRV_CONTEXT="prod")

    assert shown.exit_code == 2
    assert "there is no context prod" in shown.stderr


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["table", "list"], ["table"]),
        (["--context", "prod", "table"], ["table"]),
        (["--context=prod", "table"], ["table"]),
        (["--context", "prod"], []),
        (["--version"], ["--version"]),
        ([], []),
    ],
)
def test_given_a_line_then_its_command_is_found_behind_the_context(
    words: list[str], command: list[str]
) -> None:
    assert command_word(words) == command
