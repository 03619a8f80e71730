"""`metasrv check`: every promise, verified on real keys and real files; what is wrong, by name."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console

from metasrv.check.collect import Checked, check
from metasrv.check.inspector import RealEyes
from metasrv.check.rule import Severity
from metasrv.check.rules import RULES
from metasrv.cli.contexts.contexts import context_in_use
from metasrv.cli.environment import service_address, token_of
from metasrv.cli.errors.places import reason_of
from metasrv.cli.options import urls_at
from metasrv.cli.output import counted
from metasrv.cli.tools.check_data import CheckedData, check_tables
from metasrv.cli.tools.store_options import (
    CaFile,
    CertFile,
    KeyFile,
    PasswordFile,
    ServerName,
    User,
)
from metasrv.program.store_access import StoreAccess
from metasrv.sdk.connections import connect
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError

CLEAN, VIOLATED, BLIND = 0, 1, 2
PREFIX = "metasrv/"
READ = ("key", "table", "region", "rule")
FINDINGS = ("violation", "warning")


Access = Mapping[str, Path | str | None]
"""Settings of StoreAccess beside the endpoints."""


class PlaygroundDocument(BaseModel):
    """The part of `playground.json` that a check reads."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    etcd: list[str]
    key_prefix: str
    metasrv: list[str]


@dataclass(frozen=True, slots=True)
class Target:
    etcd: tuple[str, ...]
    prefix: str
    metasrv: tuple[str, ...]
    access: Access = field(default_factory=dict)
    token: str | None = None
    """Sent to the servers and to nodes."""


# Typer makes an option of each parameter, so there are as many as the command has.
def command(  # noqa: PLR0913
    metasrv: Annotated[
        str | None,
        typer.Option(
            help="URLs of servers to compare with, separated by commas. Default: those of "
            "--playground, else of the context in use.",
            envvar="METASRV_URL",
            metavar="URL",
        ),
    ] = None,
    etcd: Annotated[
        str | None, typer.Option(help="Endpoints of etcd, separated by commas.", metavar="URL")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help=f"Prefix of the cluster's keys; {PREFIX}.", metavar="PREFIX")
    ] = None,
    playground: Annotated[
        Path | None,
        typer.Option(help="A playground.json, in place of the options above.", metavar="FILE"),
    ] = None,
    deep: Annotated[
        bool, typer.Option(help="Also read every value of every row in files.")
    ] = False,
    data: Annotated[
        bool, typer.Option(help="Also read rows and entries of all tables, by the servers' Spark.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
    ca_file: CaFile = None,
    cert_file: CertFile = None,
    key_file: KeyFile = None,
    server_name: ServerName = None,
    user: User = None,
    password_file: PasswordFile = None,
) -> None:
    """Verify the invariants of a cluster on its keys and files.

    Exit 0: it is clean. Exit 1: violations, one a line. Exit 2: it could not be examined.
    """
    access = {
        "ca_file": ca_file,
        "cert_file": cert_file,
        "key_file": key_file,
        "server_name": server_name,
        "user": user,
        "password_file": password_file,
    }
    urls, token = compared_servers(os.environ, metasrv, playground)
    try:
        target = replace(target_of(playground, _listed(etcd), prefix, urls, access), token=token)
        checked = asyncio.run(check_target(target, deep=deep))
        checked_data = look_at_data(target) if data else None
    except (MetaError, OSError, ValueError) as error:
        typer.echo(f"could not look: {_fault(error)}", err=True)
        raise typer.Exit(BLIND) from error
    if checked_data is not None:
        checked = replace(checked, violations=(*checked.violations, *checked_data.violations))
    show(checked, as_json=as_json, deep=deep, data=checked_data)
    raise typer.Exit(exit_code(checked))


def compared_servers(
    environment: Mapping[str, str], metasrv: str | None, playground: Path | None
) -> tuple[tuple[str, ...], str | None]:
    """URLs of the option, else of the context in use, and the token for them. No URL: those of
    *playground*, if it is given; one that merely runs here may have another etcd."""
    is_named = metasrv or (playground is None and context_in_use(environment) is not None)
    address = service_address(environment, metasrv) if is_named else None
    if address is None:
        return (), token_of(environment)
    return urls_at(address.url), address.token


def target_of(
    playground: Path | None,
    etcd: Sequence[str],
    prefix: str | None,
    metasrv: Sequence[str],
    access: Access = MappingProxyType({}),
) -> Target:
    """Flags before the file. Raises ValueError if nothing says where etcd is."""
    defaults = PlaygroundDocument(etcd=[], key_prefix=PREFIX, metasrv=[])
    if playground is not None:
        try:
            defaults = PlaygroundDocument.model_validate_json(playground.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{playground}: {error.error_count()} errors") from error
    endpoints = tuple(etcd) or tuple(defaults.etcd)
    if not endpoints:
        raise ValueError("name etcd: --etcd URL, or --playground D/playground.json")
    return Target(
        etcd=endpoints,
        prefix=defaults.key_prefix if prefix is None else prefix,
        metasrv=tuple(metasrv) or tuple(defaults.metasrv),
        access=access,
    )


def exit_code(checked: Checked) -> int:
    broken = any(violation.severity is Severity.VIOLATION for violation in checked.violations)
    return VIOLATED if broken else CLEAN


def show(checked: Checked, *, as_json: bool, deep: bool, data: CheckedData | None = None) -> None:
    """Violations on standard output, one a line; the summary beside it."""
    if as_json:
        counts = None if data is None else data.counts
        typer.echo(json.dumps({**document(checked, deep=deep), "data": counts}, indent=2))
        return
    for violation in checked.violations:
        typer.echo(violation.line)
    totals = document(checked, deep=deep)
    counts = {name: count for name, count in totals.items() if isinstance(count, int)}
    read = ", ".join(counted(counts[f"{noun}s"], noun) for noun in READ)
    findings = ", ".join(counted(counts[f"{noun}s"], noun) for noun in FINDINGS)
    typer.echo(f"revision {totals['revision']}: {read}: {findings}", err=True)
    if data is not None:
        read_data = ", ".join(f"{count} {name}" for name, count in data.counts.items())
        typer.echo(f"data: {read_data}", err=True)


def document(checked: Checked, *, deep: bool) -> dict[str, object]:
    facts = checked.facts
    broken = [
        violation for violation in checked.violations if violation.severity is Severity.VIOLATION
    ]
    live = [root.live for root in facts.world.roots.values() if root.live is not None]
    return {
        "revision": facts.revision,
        "keys": len(facts.items),
        "tables": len(facts.routes()),
        "regions": len(facts.world.roots),
        "rows": sum(region.rows for region in live) if deep else None,
        "rules": sum(deep or not rule.deep for rule in RULES),
        "violations": len(broken),
        "warnings": len(checked.violations) - len(broken),
        "found": [asdict(violation) for violation in checked.violations],
    }


async def check_target(target: Target, *, deep: bool) -> Checked:
    """Returns the result of a check of *target*. Raises Unavailable if it could not look,
    ValueError if etcd may not be reached so."""
    urls = [url if "://" in url else f"http://{url}" for url in target.etcd]
    access = StoreAccess.model_validate({"endpoints": urls, **target.access})
    kv = await access.connect(target.prefix.encode())
    console = Console(stderr=True)
    busy = console.status("looking at keys, nodes and files") if console.is_terminal else None
    try:
        with busy or nullcontext():
            eyes = RealEyes(target.metasrv, target.token)
            return await check(kv, eyes, SystemClock(), deep=deep)
    finally:
        await kv.close()


def look_at_data(target: Target) -> CheckedData:
    """Has the service check rows and entries. Raises Unavailable if it could not, ValueError if no
    option names the service."""
    if not target.metasrv:
        raise ValueError("name the service: --metasrv URL, or --playground D/playground.json")
    with connect(target.metasrv, token=target.token, expects_running=True) as client:
        return check_tables(client)


def _fault(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {reason_of(error)}"
    return str(error)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
