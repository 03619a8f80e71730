"""`rename`, `drop` and `get` of what tables are placed by: the same for placements and for
tablespaces."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, TypeVar, Unpack

import typer

from metasrv.cli.complete import Completing
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
    service,
)
from metasrv.cli.output import show_changed, show_dropped, show_facts
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv.sdk.control.service import ChangeOptions
    from metasrv.sdk.sync import Client

B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)

Comment = Annotated[str | None, typer.Option(help="A comment.", metavar="TEXT")]
COMMENT_OR_NONE: typer.models.OptionInfo = typer.Option(
    help="A comment; '' removes it.", metavar="TEXT"
)


class PlacingClient(Protocol[B_co]):
    """The part of the SDK that these commands use."""

    def get(self, name: str, as_of: str | None = None) -> B_co: ...

    def rename(
        self,
        name: str,
        new_name: str,
        *,
        if_exists: bool = False,
        **options: "Unpack[ChangeOptions]",
    ) -> B_co | None: ...

    def drop(
        self, name: str, *, if_exists: bool = False, **options: "Unpack[ChangeOptions]"
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class PlacingObject(Generic[B]):
    """One of the two."""

    word: str
    unused: str
    """The condition of a drop, for the help of `drop`, as `that no table uses`."""
    kept: str
    """The effect of a rename on tables, for the help of `rename`."""
    argument: str
    """The help of its name argument."""
    new_name: str
    """The help of the argument of its new name."""
    of: Callable[["Client"], PlacingClient[B]]
    names: Completing
    full_name: Callable[[B], str]
    facts: Callable[[B], Mapping[str, object]]
    """Its fields as `get` and `alter` show them to people."""

    @property
    def name(self) -> typer.models.ArgumentInfo:
        argument: typer.models.ArgumentInfo = typer.Argument(
            metavar=self.word.upper(), help=self.argument, autocompletion=self.names
        )
        return argument


def show_altered(placing: PlacingObject[B], name: str, body: B | None, as_json: bool) -> None:
    show_changed(name, body, as_json, lambda body: show_facts(placing.facts(body)))


def add_rename(app: typer.Typer, placing: PlacingObject[B]) -> None:
    new_name = typer.Argument(metavar="NEW_NAME", help=placing.new_name)

    @app.command("rename", help=f"Give a {placing.word} another name; {placing.kept}.")
    def rename(  # noqa: PLR0913  # a parameter is an option of the command
        name: Annotated[str, placing.name],
        new_name: Annotated[str, new_name],
        if_exists: IfExists = False,
        wait: WaitS = WAIT_S,
        dry_run: DryRun = False,
        idempotency_key: IdempotencyKey = "",
        metasrv: Url = None,
        as_json: AsJson = False,
    ) -> None:
        with service(metasrv, as_json) as client, procedure_bar("rename") as tell:
            body = placing.of(client).rename(
                name,
                new_name,
                if_exists=if_exists,
                wait_s=wait,
                on_progress=tell,
                dry_run=dry_run,
                idempotency_key=idempotency_key,
            )
        show_changed(
            name, body, as_json, lambda body: typer.echo(f"{name} is {placing.full_name(body)} now")
        )


def add_drop(app: typer.Typer, placing: PlacingObject[B]) -> None:
    @app.command("drop", help=f"Drop a {placing.word} {placing.unused}.")
    def drop(  # noqa: PLR0913  # a parameter is an option of the command
        name: Annotated[str, placing.name],
        if_exists: IfExists = False,
        wait: WaitS = WAIT_S,
        dry_run: DryRun = False,
        idempotency_key: IdempotencyKey = "",
        metasrv: Url = None,
        as_json: AsJson = False,
    ) -> None:
        with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
            dropped = placing.of(client).drop(
                name,
                if_exists=if_exists,
                wait_s=wait,
                on_progress=tell,
                dry_run=dry_run,
                idempotency_key=idempotency_key,
            )
        show_dropped(name, dropped, as_json)


def add_get(app: typer.Typer, placing: PlacingObject[B]) -> None:
    @app.command("get", help=f"Show one {placing.word}.")
    def get(
        name: Annotated[str, placing.name],
        as_of: AsOf = None,
        metasrv: Url = None,
        output: Output = None,
        as_json: AsJson = False,
    ) -> None:
        form = form_of(output, as_json)
        with service(metasrv, form is Form.JSON) as client:
            body = placing.of(client).get(name, as_of)
        show_form(form, body, [placing.full_name(body)], lambda: show_facts(placing.facts(body)))
