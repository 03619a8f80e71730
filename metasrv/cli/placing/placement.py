"""`metasrv placement`: how often, on which nodes and by which engines regions are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasrv.cli.catalog.table_words import number_or_default
from metasrv.cli.complete import placement_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    IdempotencyKey,
    IfExists,
    IfNotExists,
    Url,
    WaitS,
    service,
)
from metasrv.cli.output import show, show_table
from metasrv.cli.placing.placing_commands import (
    COMMENT_OR_NONE,
    Comment,
    PlacingObject,
    add_drop,
    add_get,
    add_rename,
    show_altered,
)
from metasrv.cli.progress import procedure_bar
from metasrv_base.errors import Conflict, NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.placing.placements import PlacementBody

app = typer.Typer(no_args_is_help=True)

Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        help="A storage profile, as `hot:memory`; the first is the default.",
        metavar="NAME:ENGINE",
    ),
]
Zones = Annotated[
    list[str] | None, typer.Option("--zone", help="Only nodes of this zone.", metavar="ZONE")
]
PreferredZones = Annotated[
    list[str] | None,
    typer.Option(
        "--prefer-zone",
        help="A zone in which leaders are wanted; the first is the best.",
        metavar="ZONE",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        help="Only nodes with one of these values of a label, as `disk=ssd,nvme`.",
        metavar="NAME=VALUES",
    ),
]

Reason = Annotated[
    str | None,
    typer.Option(help="Reason of a lower --min-in-sync; the log keeps it.", metavar="TEXT"),
]
IfMatch = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="VERSION",
        help="Change the placement only if it is at this version, as `placement get` shows it.",
    ),
]


def _facts(body: PlacementBody) -> dict[str, object]:
    apart = {"storage_profiles", "node_filter", "preferred_zones"}
    return {
        **body.model_dump(mode="json", exclude=apart),
        "profiles": _profiles_text(body),
        "zones": _zones_text(body),
        "labels": _labels_text(body),
        "preferred_zones": _preferred_text(body),
    }


PLACEMENT = PlacingObject(
    "placement",
    "that no table uses",
    "the tables that use it keep it",
    "Name of the placement.",
    "Its name from now on.",
    lambda client: client.placements,
    placement_names,
    lambda body: body.name,
    _facts,
)
NameArg = Annotated[str, PLACEMENT.name]


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    partitions: Annotated[
        int,
        typer.Option(
            min=1, help="Number of regions of a table that names no partitions.", metavar="N"
        ),
    ] = 1,
    replicas: Annotated[int, typer.Option(min=1, help="Copies of each region.", metavar="N")] = 1,
    min_in_sync: Annotated[
        int | None,
        typer.Option(
            "--min-in-sync",
            min=1,
            help="Copies in sync that writes need; without it a majority.",
            metavar="N",
        ),
    ] = None,
    profile: Profiles = None,
    zone: Zones = None,
    label: Labels = None,
    prefer_zone: PreferredZones = None,
    comment: Comment = None,
    if_not_exists: IfNotExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create a placement."""
    spec: dict[str, object] = {
        "name": name,
        "partitions": partitions,
        "replicas": replicas,
        "min_in_sync": min_in_sync,
        "comment": comment,
        "if_not_exists": if_not_exists,
        "node_filter": _filter(zone, label),
        "preferred_zones": prefer_zone or [],
    }
    if profile:
        spec["storage_profiles"] = _profiles(profile)
    with service(metasrv, as_json) as client, procedure_bar("create") as tell:
        body = client.placements.create(
            spec, wait_s=wait, on_progress=tell, dry_run=dry_run, idempotency_key=idempotency_key
        )
    show(body, as_json, lambda: typer.echo(f"{body.name} created: id {body.id}"))


@app.command("alter")
def alter(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Copies of each region of tables that name none.", metavar="N"),
    ] = None,
    min_in_sync: Annotated[
        str | None,
        typer.Option(
            "--min-in-sync",
            help="Copies in sync that writes need; `default`: a majority.",
            metavar="N",
        ),
    ] = None,
    reason: Reason = None,
    profile: Profiles = None,
    zone: Zones = None,
    label: Labels = None,
    any_node: Annotated[
        bool, typer.Option("--any-node", help="Remove the node filter: any node may lead regions.")
    ] = False,
    prefer_zone: PreferredZones = None,
    any_zone: Annotated[
        bool, typer.Option("--any-zone", help="Remove the preferred zones of leaders.")
    ] = False,
    comment: Annotated[str | None, COMMENT_OR_NONE] = None,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change a placement. An option replaces all earlier values of its kind. Regions get or lose
    copies, and other leaders; no region moves."""
    patch: dict[str, Any] = {"if_exists": if_exists, "reason": reason}
    patch |= _new_filter(zone, label, any_node=any_node)
    patch |= _new_zones(prefer_zone, any_zone=any_zone)
    patch |= {"storage_profiles": _profiles(profile)} if profile else {}
    if comment is not None:
        patch["comment"] = comment or None
    if replicas is not None:
        patch["replicas"] = replicas
    if min_in_sync is not None:
        patch["min_in_sync"] = number_or_default(min_in_sync, "--min-in-sync")
    if len(patch) == 2:
        raise typer.BadParameter("say what to change; --help lists the options")
    with service(metasrv, as_json) as client, procedure_bar("alter") as tell:
        patch, etag = _on_present(client, name, patch, if_match)
        body = client.placements.alter(
            name,
            patch,
            if_match=etag,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show_altered(PLACEMENT, name, body, as_json)


add_rename(app, PLACEMENT)
add_drop(app, PLACEMENT)
add_get(app, PLACEMENT)


@app.command("list")
def list_(
    as_of: AsOf = None, metasrv: Url = None, output: Output = None, as_json: AsJson = False
) -> None:
    """List the placements, by name."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        placements = client.placements.list(as_of)
    rows = [
        (
            each.id,
            each.name,
            each.replicas,
            each.partitions,
            _profiles_text(each),
            _zones_text(each),
            _labels_text(each),
            _preferred_text(each),
        )
        for each in placements
    ]
    head = (
        "id",
        "placement",
        "replicas",
        "partitions",
        "profiles",
        "zones",
        "labels",
        "preferred zones",
    )
    names = [each.name for each in placements]
    show_form(form, placements, names, lambda: show_table(head, rows, optional=("id", "profiles")))


def _profiles(texts: list[str]) -> list[dict[str, str]]:
    profiles = []
    for text in texts:
        name, colon, engine = text.partition(":")
        if not (name and colon and engine):
            raise typer.BadParameter(f"--profile {text}: it is NAME:ENGINE, as hot:memory")
        profiles.append({"name": name, "engine": engine})
    return profiles


def _new_filter(
    zones: list[str] | None, labels: list[str] | None, *, any_node: bool
) -> dict[str, object]:
    """The field of a patch, if one of the options is given. Raises BadParameter."""
    if any_node and (zones or labels):
        raise typer.BadParameter("--any-node goes with neither --zone nor --label")
    return {"node_filter": _filter(zones, labels)} if zones or labels or any_node else {}


def _on_present(
    client: Client, name: str, patch: dict[str, Any], version: int | None
) -> tuple[dict[str, Any], str]:
    """Returns *patch*, and the ETag that the placement must have; empty: any.

    A node filter that gives only zones or only labels gets the others as they are, since the
    service replaces both; the placement must be as it was read then. Raises Conflict if it is not
    at *version*, and NotFound.
    """
    new = patch.get("node_filter", {"zones": [], "labels": []})
    is_half = bool(new["zones"]) != bool(new["labels"])
    if not is_half and version is None:
        return patch, ""
    try:
        present = client.placements.get(name)
    except NotFound:
        if version is not None or not patch["if_exists"]:
            raise
        return patch, ""
    required = present if version is None else present.model_copy(update={"version": version})
    if not is_half:
        return patch, required.etag
    if required != present:
        versions = {"expected": f"version {version}", "found": f"version {present.version}"}
        raise Conflict("version-mismatch", name=name, **versions)
    kept = {"zones": present.node_filter.zones, "labels": present.node_filter.labels}
    return {**patch, "node_filter": {half: new[half] or kept[half] for half in kept}}, present.etag


def _new_zones(preferred: list[str] | None, *, any_zone: bool) -> dict[str, object]:
    """The field of a patch, if one of the options is given. Raises BadParameter."""
    if any_zone and preferred:
        raise typer.BadParameter("--any-zone does not go with --prefer-zone")
    return {"preferred_zones": preferred or []} if preferred or any_zone else {}


def _filter(zones: list[str] | None, labels: list[str] | None) -> dict[str, object]:
    conditions = []
    for text in labels or ():
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise typer.BadParameter(f"--label {text}: it is NAME=VALUES, as disk=ssd,nvme")
        conditions.append({"label": name, "in": values.split(",")})
    return {"zones": zones or [], "labels": conditions}


def _profiles_text(body: PlacementBody) -> str:
    return ", ".join(f"{profile.name}:{profile.engine}" for profile in body.storage_profiles)


def _zones_text(body: PlacementBody) -> str:
    """The zones of the nodes that may lead."""
    return ", ".join(body.node_filter.zones) or "any"


def _labels_text(body: PlacementBody) -> str:
    """The conditions on labels of these nodes, in the words of the option."""
    conditions = (f"{each.label}={','.join(each.values)}" for each in body.node_filter.labels)
    return ", ".join(conditions) or "any"


def _preferred_text(body: PlacementBody) -> str:
    return ", ".join(body.preferred_zones) or "none"
