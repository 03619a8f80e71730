"""`create`, `get` and `drop` of what holds other things: the same for catalogs and for schemas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol, Unpack

import typer

from metasrv.cli.complete import Completing
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    Cascade,
    DryRun,
    IdempotencyKey,
    IfExists,
    IfNotExists,
    Url,
    WaitS,
    Yes,
    confirm,
    service,
)
from metasrv.cli.output import show, show_dropped, show_facts
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv.sdk.control.service import ChangeOptions
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.tables import CatalogBody, SchemaBody


class NamespaceClient(Protocol):
    """The part of the SDK that these commands use."""

    def create(
        self, name: str, if_not_exists: bool = False, **options: "Unpack[ChangeOptions]"
    ) -> "CatalogBody | SchemaBody": ...

    def get(self, name: str, as_of: str | None = None) -> "CatalogBody | SchemaBody": ...

    def drop(
        self,
        name: str,
        cascade: bool = False,
        *,
        if_exists: bool = False,
        **options: "Unpack[ChangeOptions]",
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class Namespace:
    """One of the two."""

    word: str
    holds: str
    """The objects that must be gone before a drop without --cascade, as `schema`."""
    begins: str
    """Its first contents, for the help of `create`."""
    empty: str
    """Its contents when it is dropped without --cascade, for the help of `drop`."""
    argument: str
    """The help of its name argument."""
    of: Callable[["Client"], NamespaceClient]
    names: Completing


def commands(namespace: Namespace) -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    _add_create(app, namespace)
    _add_get(app, namespace)
    _add_drop(app, namespace)
    return app


def _add_create(app: typer.Typer, namespace: Namespace) -> None:
    @app.command("create", help=f"Create a {namespace.word}{namespace.begins}.")
    def create(  # noqa: PLR0913  # a parameter is an option of the command
        name: Annotated[str, _argument(namespace)],
        if_not_exists: IfNotExists = False,
        wait: WaitS = WAIT_S,
        dry_run: DryRun = False,
        idempotency_key: IdempotencyKey = "",
        metasrv: Url = None,
        as_json: AsJson = False,
    ) -> None:
        with service(metasrv, as_json) as client, procedure_bar("create") as tell:
            body = namespace.of(client).create(
                name,
                if_not_exists,
                wait_s=wait,
                on_progress=tell,
                dry_run=dry_run,
                idempotency_key=idempotency_key,
            )
        show(body, as_json, lambda: typer.echo(f"{_full_name(body)} created: id {body.id}"))


def _add_get(app: typer.Typer, namespace: Namespace) -> None:
    @app.command("get", help=f"Show one {namespace.word}.")
    def get(
        name: Annotated[str, _argument(namespace)],
        as_of: AsOf = None,
        metasrv: Url = None,
        output: Output = None,
        as_json: AsJson = False,
    ) -> None:
        form = form_of(output, as_json)
        with service(metasrv, form is Form.JSON) as client:
            body = namespace.of(client).get(name, as_of)
        show_form(form, body, [_full_name(body)], lambda: show_facts(body.model_dump(mode="json")))


def _add_drop(app: typer.Typer, namespace: Namespace) -> None:
    @app.command(
        "drop",
        help=f"Drop a {namespace.word} that holds {namespace.empty}; "
        "with --cascade, all that it holds too.",
    )
    def drop(  # noqa: PLR0913  # a parameter is an option of the command
        name: Annotated[str, _argument(namespace)],
        cascade: Cascade = False,
        if_exists: IfExists = False,
        yes: Yes = False,
        wait: WaitS = WAIT_S,
        dry_run: DryRun = False,
        idempotency_key: IdempotencyKey = "",
        metasrv: Url = None,
        as_json: AsJson = False,
    ) -> None:
        if cascade:
            confirm(f"{name} goes, and each {namespace.holds} in it.", yes=yes or dry_run)
        with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
            dropped = namespace.of(client).drop(
                name,
                cascade,
                if_exists=if_exists,
                wait_s=wait,
                on_progress=tell,
                dry_run=dry_run,
                idempotency_key=idempotency_key,
            )
        show_dropped(name, dropped, as_json)


def _argument(namespace: Namespace) -> typer.models.ArgumentInfo:
    argument: typer.models.ArgumentInfo = typer.Argument(
        metavar=namespace.word.upper(), help=namespace.argument, autocompletion=namespace.names
    )
    return argument


def _full_name(body: "CatalogBody | SchemaBody") -> str:
    from metasrv_base.wire.api.tables import CatalogBody

    return body.name if isinstance(body, CatalogBody) else f"{body.catalog}.{body.name}"
