"""Options that every client command has, and the way to the service with the exit codes."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.output import show_json
from metasrv.cli.plan import show_plans
from metasrv.cli.problem_words import is_unreachable, words
from metasrv.sdk.client import urls_of
from metasrv.sdk.connections import connect
from metasrv.sdk.control.planned import Planned
from metasrv.sdk.sync import Client
from metasrv_base.errors import MetaError, Refused, Unknown
from metasrv_base.token import optional_token
from metasrv_base.wire.api.changes import GRACE_S_MAX
from metasrv_base.wire.problem.problems import problem_of

TOKEN = "METASRV_TOKEN"
TOKEN_FILE = "METASRV_TOKEN_FILE"
EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_STILL_RUNNING = 4
"""A wait ran out; with `--wait 0` nobody waited, and that is no fault."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""
PATIENCE_MS = 5_000
"""A person waits less for a service that is silent than a program does."""

Url = Annotated[
    str | None,
    typer.Option(
        "--metasrv",
        envvar="METASRV_URL",
        help="URL of the service, or several with commas between.",
        metavar="URL",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]
WaitS = Annotated[
    float,
    typer.Option(
        "--wait", min=0, help="Seconds to wait for the end; it goes on anyway. 0: only start it."
    ),
]
GraceS = Annotated[
    int,
    typer.Option(
        "--grace",
        min=0,
        max=GRACE_S_MAX,
        help="Seconds for which what is dropped can be undropped; the drop waits as long.",
    ),
]
Cascade = Annotated[
    bool, typer.Option("--cascade", help="With all it holds, which is hidden at once.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show the plan and what is in its way.")
]
TableArg = Annotated[
    str, typer.Argument(metavar="TABLE", help="`t`, `public.t` or `main.public.t`")
]
WAIT_S = 300.0


@contextmanager
def service(url: str | None, as_json: bool) -> Iterator[Client]:
    """A client of the service. Errors end the command: said for people, with the exit code."""
    if not url:
        raise typer.BadParameter("say where the service is: --metasrv URL, or METASRV_URL")
    try:
        urls = urls_of(url)
    except Refused as error:
        raise typer.BadParameter(f"{url} is no URL: as http://127.0.0.1:4000") from error
    token = token_of(os.environ)
    with told(as_json), connect(urls, patience_ms=PATIENCE_MS, token=token) as client:
        yield client


def token_of(environment: Mapping[str, str]) -> str | None:
    """METASRV_TOKEN, or the first line of the file METASRV_TOKEN_FILE. Never a flag: flags are
    seen by whoever lists processes."""
    if TOKEN in environment:
        return environment[TOKEN]
    path = environment.get(TOKEN_FILE)
    try:
        return optional_token(Path(path) if path else None)
    except ValueError as error:
        raise typer.BadParameter(f"{TOKEN_FILE}: {error}") from error


@contextmanager
def told(as_json: bool) -> Iterator[None]:
    """Our errors as words on stderr (JSON: the problem), and an exit code. A plan: shown."""
    try:
        yield
    except Planned as planned:
        show_plans(planned.plans, as_json)
        raise typer.Exit from planned
    except MetaError as error:
        if isinstance(error, Unknown) and {"procedure_id", "state"} <= error.facts.keys():
            raise typer.Exit(_left(error, as_json)) from error
        if as_json:
            print(json.dumps(problem_of(error, "", "")[2]), file=sys.stderr)
        else:
            print("\n".join(words(error)), file=sys.stderr)
        code = EXIT_UNREACHABLE if is_unreachable(error) else EXIT_REFUSED
        raise typer.Exit(code) from error


def _left(error: Unknown, as_json: bool) -> int:
    """Says that nobody waits for a procedure any more, which goes on; the exit code."""
    id, state = error.facts["procedure_id"], error.facts["state"]
    if as_json:
        show_json({"id": id, "state": state, "done": False})
    else:
        typer.echo(f"started {id}: it is {state}; follow with `metasrv procedure watch {id}`")
    return 0 if error.facts.get("waited_s") == 0 else EXIT_STILL_RUNNING
