"""Options that every client command has, and the way to the service with the exit codes."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from base.errors import MetaError, Refused, Unavailable, Unknown
from base.token import optional_token
from base.wire.changes import GRACE_S_MAX
from base.wire.problems import kind_of, problem_of
from metasrv.cli.plan import show_plans
from metasrv.sdk.client import urls_of
from metasrv.sdk.connect import connect
from metasrv.sdk.planned import Planned
from metasrv.sdk.sync import Client

TOKEN = "METASRV_TOKEN"
TOKEN_FILE = "METASRV_TOKEN_FILE"
EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
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
    float, typer.Option("--wait", min=0, help="Seconds to wait for the end; it goes on anyway.")
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
Direct = Annotated[
    bool, typer.Option("--direct", help="Straight at the nodes, though there are frontends.")
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
        if as_json:
            print(json.dumps(problem_of(error, "", "")[2]), file=sys.stderr)
        else:
            print("\n".join(words(error)), file=sys.stderr)
        code = EXIT_UNREACHABLE if is_unreachable(error) else EXIT_REFUSED
        raise typer.Exit(code) from error


def is_unreachable(error: MetaError) -> bool:
    """Whether no server has said anything: what servers say has a detail, a proxy's a status."""
    if not isinstance(error, Unavailable | Unknown):
        return False
    return not {"detail", "status", "procedure_id", "regions", "reason"} & error.facts.keys()


def words(error: MetaError) -> Iterator[str]:
    """What happened, what is wrong, what to do, and what to look at."""
    kind = kind_of(error)
    problem = problem_of(error, "", "")[2]
    detail = error.facts.get("detail") or problem["detail"]
    yield f"error: {kind.title} ({kind.code})"
    errors = problem.get("errors")
    if not errors:
        yield f"  {detail}"
    for one in errors if isinstance(errors, list) else []:
        if isinstance(one, dict):
            yield f"  {one['pointer']}: {one['detail']}"
    for name in ("keys", "regions", "waits_for", "told"):
        value = error.facts.get(name)
        for entry in value if isinstance(value, list) else [value] if value else []:
            yield f"  {name}: {entry}"
    if isinstance(rows := error.facts.get("rows"), int):
        yield f"  {rows} rows were loaded before that"
    if is_unreachable(error):
        yield "  to do: check the URL and whether the service runs"
    elif rows is not None and kind.code == "invalid-request":
        yield "  to do: mend the file, then load it again from its start"
    else:
        yield f"  to do: {kind.advice}"
    if (procedure := error.facts.get("procedure_id")) is not None:
        yield f"  procedure: {procedure}  (metasrv procedure get {procedure})"
