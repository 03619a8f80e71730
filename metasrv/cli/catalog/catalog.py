"""`metasrv catalog`: the tenants, each with schemas of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.catalog.compact import compact, pin, pins, unpin
from metasrv.cli.catalog.namespaces import Namespace, commands
from metasrv.cli.catalog.versions import catalog_versions
from metasrv.cli.complete import catalog_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    IdempotencyKey,
    IfExists,
    Url,
    WaitS,
    one_id,
    service,
)
from metasrv.cli.output import show_changed, show_facts, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from pydantic import JsonValue

CatalogName = Annotated[
    str,
    typer.Argument(
        metavar="CATALOG",
        help="Name of the catalog.",
        autocompletion=catalog_names,
        callback=one_id,
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help="A limit as `tables=100`, `regions=400` or `procedures=8`; null: none. May be "
        "repeated.",
        metavar="LIMIT=VALUE",
    ),
]
TenantSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting as `drop_retention_ms=86400000`; null: the default. May be repeated.",
        metavar="SETTING=VALUE",
    ),
]

app = commands(
    Namespace(
        "catalog",
        "schema",
        " with the schema `public`",
        "no table, and no schema but `public`",
        "Name of the catalog, e.g. `main`.",
        lambda client: client.catalogs,
        catalog_names,
    )
)


@app.command("list")
def list_(
    as_of: AsOf = None, metasrv: Url = None, output: Output = None, as_json: AsJson = False
) -> None:
    """List the catalogs, by name."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        catalogs = client.catalogs.list(as_of)
    rows = [(catalog.id, catalog.name, catalog.options, catalog.created_at) for catalog in catalogs]
    names = [catalog.name for catalog in catalogs]
    show_form(
        form, catalogs, names, lambda: show_table(("id", "catalog", "options", "created"), rows)
    )


app.command("versions")(catalog_versions)
app.command("compact")(compact)
app.command("pins")(pins)
app.command("pin")(pin)
app.command("unpin")(unpin)


@app.command("alter")
def alter_catalog(  # noqa: PLR0913  # a parameter is an option of the command
    name: CatalogName,
    limit: Limits = None,
    setting: TenantSettings = None,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change settings and limits of a catalog; those that are not named stay as they are."""
    limits, settings = _parsed("--limit", limit), _parsed("--set", setting)
    if not limits and not settings:
        raise typer.BadParameter("name at least one --limit or --set")
    with service(metasrv, as_json) as client, procedure_bar("alter") as tell:
        body = client.catalogs.alter(
            name,
            settings=settings,
            limits=limits,
            if_exists=if_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show_changed(name, body, as_json, lambda body: show_facts(body.model_dump(mode="json")))


def _parsed(option: str, pairs: list[str] | None) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not name or not equals or name in values:
            raise typer.BadParameter(f"{pair} is not NAME=VALUE, each name once", param_hint=option)
        values[name] = _value(text)
    return values


def _value(text: str) -> JsonValue:
    """JSON, or a bare word."""
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value
