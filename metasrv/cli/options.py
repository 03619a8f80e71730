"""Options that every client command has, and the way to the service with the exit codes."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import table_names
from metasrv.cli.environment import ServiceAddress, patience_ms, service_address
from metasrv.cli.errors.places import NO_PLACES, Places
from metasrv.cli.near import suggesting
from metasrv.cli.output import show_json
from metasrv.cli.progress import EXIT_INTERRUPTED, ways_on
from metasrv.sdk.control.planned import Planned
from metasrv_base.errors import MetaError, Refused, Unknown

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client

EXIT_REFUSED = 1
EXIT_USAGE = 2
"""The command makes no sense, or no service answered it."""
EXIT_WAIT_RAN_OUT = 3
"""The change goes on. `--wait 0` does not wait, so it ends with 0."""
GRACE_S_MAX = 1_800
"""The bound of metasrv_base/wire/api/changes.py, whose models a TAB need not import."""
PATIENCE_MS = 5_000
"""A person waits less for a service that is silent than a program does."""

Url = Annotated[
    str | None,
    typer.Option(
        "--metasrv",
        envvar="METASRV_URL",
        help="URLs of the service, separated by commas. Default: the context in use, else the "
        "playground that runs here.",
        metavar="URL",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
WaitS = Annotated[
    float,
    typer.Option(
        "--wait",
        min=0,
        help="Seconds to wait for the end; the change goes on afterwards. 0: only start it.",
        metavar="SECONDS",
    ),
]
GraceS = Annotated[
    int,
    typer.Option(
        "--grace",
        min=0,
        max=GRACE_S_MAX,
        help="Seconds for which the drop can be undone. The drop waits for so long.",
        metavar="SECONDS",
    ),
]
IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Succeed if an equal object exists already.")
]
IfExists = Annotated[
    bool, typer.Option("--if-exists", help="Succeed, changing nothing, if it does not exist.")
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of entries to list.", metavar="N")]
Cascade = Annotated[
    bool, typer.Option("--cascade", help="Drop everything in it too. It is hidden at once.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show the plan and what blocks it.")
]
IdempotencyKey = Annotated[
    str,
    typer.Option(
        metavar="KEY",
        help="Requests with the same key are carried out once. Default: a new key.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        help="Show an earlier state: that of a version of the catalog, e.g. 17, or of a "
        "time, e.g. 2013-01-31T23:59:59Z.",
        metavar="VERSION|TIME",
    ),
]
IfMatch = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="VERSION",
        help="Change the table only if it is at this version, as `table get` shows it.",
    ),
]
TableArg = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="`t`, `public.t` or `main.public.t`", autocompletion=table_names
    ),
]
MaxLag = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=3_600_000,
        help="Age in ms that rows may have: copies of regions may answer. Default: leaders answer.",
        metavar="MS",
    ),
]
WAIT_S = 300.0
LOOK_S = 0.001
"""The least wait, in seconds, of a command that does not only start something: no wait at all means
that."""


@contextmanager
def service(url: str | None, as_json: bool, places: Places = NO_PLACES) -> Iterator["Client"]:
    """A client of the service. Errors end the command: said for people, with the exit code.
    *places*: of what the command sends."""
    from metasrv.sdk.connections import connect

    asked = asked_service(url)
    urls = urls_at(asked.url)
    patience = patience_ms(os.environ)
    with (
        show_errors(as_json, ", ".join(urls), places),
        connect(
            urls,
            patience_ms=PATIENCE_MS if patience is None else patience,
            token=asked.token,
            expects_running=patience is None,
        ) as client,
        suggesting(client),
    ):
        yield client


def asked_service(url: str | None) -> ServiceAddress:
    """The service at *url*, of the context in use, or of the playground that runs here. Raises
    BadParameter without one."""
    address = service_address(os.environ, url)
    if address is None:
        raise typer.BadParameter(
            "say where the service is: --metasrv URL, METASRV_URL, or `metasrv context use`; no "
            "playground runs here"
        )
    return address


def urls_at(text: str) -> tuple[str, ...]:
    """URLs with commas between, as an option or a variable has them. Raises BadParameter."""
    from metasrv.sdk.urls import urls_of

    try:
        return urls_of(with_scheme(text))
    except Refused as error:
        raise typer.BadParameter(f"{text} is not a URL; one is http://127.0.0.1:4620") from error


def with_scheme(url: str) -> str:
    """URLs with commas between, in which `HOST:PORT` means `http://HOST:PORT`."""
    parts = [part.strip() for part in url.split(",")]
    return ",".join(f"http://{part}" if part and "://" not in part else part for part in parts)


def confirm(question: str, *, yes: bool) -> None:
    """Asks on a terminal, unless *yes*. Raises BadParameter where nobody can answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{question} Say --yes: there is no terminal to ask on")
    try:
        is_sure = typer.confirm(f"{question} Go on?", err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        typer.echo("", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not is_sure:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(EXIT_REFUSED)


def one_id(text: str) -> str:
    """*text*, an id in a path of the API. Raises BadParameter for one that no object has."""
    if not text or set(text) & set("/?#%"):
        raise typer.BadParameter(f"{text!r} is not an id")
    return text


def etag_at(client: "Client", name: str, version: int | None) -> str:
    """The ETag of the table *name* at *version*, for `if_match`; empty without one."""
    return "" if version is None else f'"t{client.tables.get(name).id}-{version}"'


@contextmanager
def show_errors(as_json: bool, urls: str = "the URL", places: Places = NO_PLACES) -> Iterator[None]:
    """Shows our errors as words on stderr (JSON: the problem) and ends with an exit code; shows a
    plan. *urls*: of the service that is asked."""
    try:
        yield
    except MetaError as error:
        raise typer.Exit(show_error(error, as_json, urls, places)) from error
    except Planned as outcome:
        from metasrv.cli.plan import show_plans

        show_plans(outcome.plans, as_json)
        raise typer.Exit from outcome


def show_error(error: MetaError, as_json: bool, urls: str, places: Places = NO_PLACES) -> int:
    """Shows an error as `show_errors` does. Returns the exit code."""
    from metasrv.cli.errors.problem_words import words
    from metasrv_base.wire.problem.problems import problem_of

    if is_left(error):
        _show_left(error, as_json)
    elif as_json:
        request_id = str(error.facts.get("request_id", ""))
        print(json.dumps(problem_of(error, "", request_id)[2]), file=sys.stderr)
    else:
        print("\n".join(words(error, urls, places)), file=sys.stderr)
    return exit_code_of(error)


def is_left(error: MetaError) -> bool:
    """Whether the wait for a procedure ran out, and it goes on."""
    return isinstance(error, Unknown) and {"procedure_id", "state"} <= error.facts.keys()


def exit_code_of(error: MetaError) -> int:
    from metasrv.cli.errors.unreachable import is_unreachable

    if is_left(error):
        return 0 if error.facts.get("waited_s") == 0 else EXIT_WAIT_RAN_OUT
    return EXIT_USAGE if is_unreachable(error) else EXIT_REFUSED


def _show_left(error: MetaError, as_json: bool) -> None:
    """Says that the command no longer waits for a procedure, which goes on."""
    id, state, waited_s = (error.facts.get(name) for name in ("procedure_id", "state", "waited_s"))
    if as_json:
        show_json({"id": id, "state": state, "done": False})
    else:
        is_started = waited_s == 0
        typer.echo(f"started {id}" if is_started else f"{id} is {state} and goes on")
        typer.echo("\n".join(ways_on(str(id))))
