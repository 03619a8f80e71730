"""`metasrv catalog compact`, `pins`, `pin` and `unpin`: how far back the catalog's history
reaches."""

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.api.snapshots import CatalogPinBody, RevisionPinBody

HEAD = ("what", "version", "since", "expires", "reason")
PinArg = Annotated[str, typer.Argument(metavar="NAME", help="Name of the pin, e.g. `nightly`.")]


def compact(
    drop_history: Annotated[
        bool,
        typer.Option(
            "--drop-history", help="Delete all history that nothing pins, however new it is."
        ),
    ] = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make a snapshot of the catalog, and delete the log that it replaces."""
    with service(metasrv, as_json) as client:
        done = client.catalogs.snapshot(drop_history)
    made = "made" if done.made else "already there"
    text = (
        f"snapshot of version {done.version}: {made}; "
        f"history from version {done.oldest_version} on; {done.deleted} keys deleted"
    )
    show(done, as_json, lambda: typer.echo(text))


def pins(metasrv: Url = None, output: Output = None, as_json: AsJson = False) -> None:
    """List what keeps the catalog's log: pins, holders of schema leases, procedures; and readers
    that keep etcd from being compacted."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        listed = client.catalogs.pins()
    names = [pin.what for pin in listed.pins] + [pin.what for pin in listed.revisions]
    rows = [*map(_row, listed.pins), *map(_revision_row, listed.revisions)]
    show_form(form, listed, names, lambda: show_table(HEAD, rows))


def pin(  # noqa: PLR0913  # a parameter is an option of the command
    name: PinArg,
    version: Annotated[int, typer.Argument(min=1, metavar="VERSION")],
    reason: Annotated[
        str, typer.Option(help="A reason, shown in the list of pins.", metavar="TEXT")
    ],
    seconds: Annotated[
        int,
        typer.Option(
            "--for", min=1, max=86_400, metavar="SECONDS", help="Seconds until the pin expires."
        ),
    ] = 600,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Pin a version of the catalog until the pin expires. Repeat the command to renew the pin."""
    with service(metasrv, as_json) as client:
        done = client.catalogs.pin(name, version, reason, expires_in_s=seconds)
    show(done, as_json, lambda: show_table(HEAD, [_row(done)]))


def unpin(name: PinArg, metasrv: Url = None) -> None:
    """Delete a pin."""
    with service(metasrv, False) as client:
        client.catalogs.unpin(name)


def _row(pin: "CatalogPinBody") -> tuple[object, ...]:
    return pin.what, pin.version, pin.since, pin.expires_at or "with its end", pin.reason


def _revision_row(pin: "RevisionPinBody") -> tuple[object, ...]:
    version = f"etcd {pin.revision}"
    return pin.what, version, pin.since, pin.expires_at, f"server {pin.server} reads it"
