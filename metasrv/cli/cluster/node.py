"""`metasrv node`: who is alive, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from metasrv.cli.cluster.procedure_text import end_of, show_end
from metasrv.cli.complete import node_ids
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.near import must_be_among
from metasrv.cli.options import WAIT_S, AsJson, DryRun, IdempotencyKey, Url, WaitS, one_id, service
from metasrv.cli.output import show_facts, show_json, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv_base.wire.api.adoption import AdoptionBody, RegionFinding
    from metasrv_base.wire.api.cluster import NodeBody, QuarantinedFolder, UnclaimedFolder

app = typer.Typer(no_args_is_help=True)

FINDINGS_MAX = 1_000
NODE_HEAD = ("node", "state", "address", "zone", "leads", "heard", "phi")
WIDE_HEAD = ("root", "version", "registered", "labels")
NodeArg = Annotated[
    str,
    typer.Argument(
        metavar="NODE", help="Id of the node.", autocompletion=node_ids, callback=one_id
    ),
]
Reason = Annotated[str, typer.Option(help="A reason, shown with the node.", metavar="TEXT")]


@app.command("list")
def list_(
    state: Annotated[
        str, typer.Option(help="Only nodes in this state, e.g. `dead`.", metavar="STATE")
    ] = "",
    zone: Annotated[str, typer.Option(help="Only nodes of this zone.", metavar="ZONE")] = "",
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the registered nodes."""
    if state:
        from metasrv_base.wire.api.cluster import NodeState

        must_be_among(state, get_args(NodeState), "--state", "state")
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        all_nodes = client.nodes.list()
        if zone:
            must_be_among(zone, sorted({node.zone for node in all_nodes}), "--zone", "zone")
        nodes = [
            node for node in all_nodes if state in ("", node.state) and zone in ("", node.zone)
        ]
    show_form(
        form,
        nodes,
        [node.id for node in nodes],
        lambda: _show_nodes(nodes, NODE_HEAD, _node_row),
        lambda: _show_nodes(nodes, (*NODE_HEAD, *WIDE_HEAD), _wide_row),
    )


@app.command("get")
def get(
    node: NodeArg,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show one node, with the regions it has reported."""
    with service(metasrv, as_json) as client:
        body = client.nodes.get(node)
    if as_json:
        show_json(body)
        return
    hidden = {"regions", "reported", "resources", "heard_ms_ago", "quarantined"}
    facts = body.model_dump(mode="json", exclude=hidden)
    show_facts({**facts, "labels": _labels_text(body), "heard": _heard(body)})
    if body.quarantined:
        typer.echo("\nin quarantine, neither served nor deleted:")
        for folder in body.quarantined:
            typer.echo(f"  {folder}")
    if body.regions:
        typer.echo()
        rows = [
            (region.region_id, region.epoch, region.state, region.rows, region.bytes)
            for region in body.regions
        ]
        show_table(("region", "epoch", "state", "rows", "bytes"), rows)
        more = sum(body.reported.values()) - len(rows)
        if more > 0:
            typer.echo(f"and {more} more")


@app.command("orphans")
def orphans(node: NodeArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """List folders on a node's disk that no route names, each with its proof, and those in
    quarantine. Deletes nothing."""
    folders: list[UnclaimedFolder] = []
    held: list[QuarantinedFolder] = []
    with service(metasrv, as_json) as client:
        page = client.nodes.orphans(node)
        folders, held = [*page.folders], [*page.quarantined]
        while page.next is not None:
            page = client.nodes.orphans(node, page.next)
            folders += page.folders
            held += page.quarantined
    if as_json:
        show_json([*folders, *held])
        return
    rows = [
        (each.root, each.region_id, each.epoch, each.proof or f"waits: {each.wait}")
        for each in folders
    ]
    show_table(("root", "region", "epoch", "orphan"), rows)
    if held:
        quarantined = [
            (
                each.root,
                each.quarantined_at,
                each.deleted_after if each.proof else f"stays: {each.wait}",
                each.bytes,
            )
            for each in held
        ]
        show_table(("in quarantine", "since", "deleted after", "bytes"), quarantined)


@app.command("cordon")
def cordon(node: NodeArg, reason: Reason, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Cordon a node: it gets no new regions, and keeps those that it has."""
    with service(metasrv, as_json) as client:
        body = client.nodes.cordon(node, reason)
    _show(body, as_json)


@app.command("uncordon")
def uncordon(node: NodeArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Uncordon a node: it may get new regions again."""
    with service(metasrv, as_json) as client:
        body = client.nodes.uncordon(node)
    _show(body, as_json)


@app.command("label")
def label(
    node: NodeArg,
    changes: Annotated[
        list[str],
        typer.Argument(metavar="CHANGE...", help="`disk=ssd` sets a label, `disk-` removes it."),
    ],
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change labels of a node, which node filters of placements match. No region moves."""
    labels = _labels(changes)
    with service(metasrv, as_json) as client:
        body = client.nodes.label(node, labels)
    if as_json:
        show_json(body)
    else:
        typer.echo(f"{body.id}: {_labels_text(body) or 'no labels'}")


@app.command("release")
def release(node: NodeArg, reason: Reason, metasrv: Url = None, as_json: AsJson = False) -> None:
    """End the quarantine of regions that a removed node brought back (see `node get`)."""
    with service(metasrv, as_json) as client:
        released = client.nodes.release(node, reason)
    if as_json:
        show_json(released)
    else:
        typer.echo(f"{released.id} is in no quarantine")


@app.command("rebind")
def rebind(
    node: NodeArg,
    principal: Annotated[str, typer.Option(help="The name of the token.", metavar="NAME")],
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bind a node to another token, with which it registers and reports from now on."""
    with service(metasrv, as_json) as client:
        body = client.nodes.rebind(node, principal)
    if as_json:
        show_json(body)
    else:
        typer.echo(f"{body.id} is bound to the token of {body.principal}")


@app.command("adopt")
def adopt(  # noqa: PLR0913  # a parameter is an option of the command
    node: NodeArg,
    address: Annotated[
        str | None,
        typer.Option(help="URL of the node, if it is not that of the backup.", metavar="URL"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A node that will not come back: do not wait for it.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Take over a node of the cluster from whose backup this one was restored."""
    from metasrv.cli.progress import bar

    opened, total, after = 0, 0, 0
    findings: list[RegionFinding] = []
    with service(metasrv, as_json) as client, bar(f"adopt {node}") as shown:
        while True:
            body = client.nodes.adopt(node, address, without or (), after, dry_run)
            opened, total = opened + body.opened, total + body.findings_total
            findings += body.findings[: FINDINGS_MAX - len(findings)]
            shown.tell(f"adopt {node}: regions", opened, None)
            if body.next is None:
                break
            after = body.next
    update = {"opened": opened, "findings": tuple(findings), "findings_total": total}
    whole = body.model_copy(update=update)
    if as_json:
        show_json(whole)
    else:
        _show_adoption(whole, dry_run)


def _show_adoption(body: AdoptionBody, dry_run: bool) -> None:
    typer.echo(f"{body.node_id} {'would be' if dry_run else 'is'} adopted")
    if body.awaited:
        typer.echo(f"no region opens yet: waiting for {', '.join(body.awaited)}")
    typer.echo(f"{body.opened} regions {'would open' if dry_run else 'open'}")
    if body.findings:
        rows = [
            (each.region_id or "-", each.table, each.fate, each.reason) for each in body.findings
        ]
        show_table(("region", "table", "is", "reason"), rows)
    if body.findings_total > len(body.findings):
        typer.echo(f"and {body.findings_total - len(body.findings)} more")


@app.command("drain")
def drain(  # noqa: PLR0913  # a parameter is an option of the command
    node: NodeArg,
    reason: Reason,
    to: Annotated[
        list[str] | None,
        typer.Option(
            help="A node that may take the regions. May be repeated.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    dropped: Annotated[
        str,
        typer.Option(
            help="Dropped tables: `move` them, `wait` for their purge, `purge` or `keep` them.",
            metavar="END",
        ),
    ] = "move",
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Cordon a node, move its regions away while it is alive, and wait for the end."""
    from metasrv_base.wire.api.cluster import DroppedTables

    must_be_among(dropped, get_args(DroppedTables), "--dropped", "end of dropped tables")
    with service(metasrv, as_json) as client, procedure_bar("drain") as tell:
        started = client.nodes.drain(
            node,
            reason,
            to or (),
            cast("DroppedTables", dropped),
            dry_run=dry_run,
            idempotency_key=idempotency_key,
            wait_s=0,
        )
        ended = end_of(client, started, wait, tell)
    show_end(ended, as_json)


@app.command("decommission")
def decommission(  # noqa: PLR0913  # a parameter is an option of the command
    node: NodeArg,
    reason: Reason,
    lost: Annotated[
        bool,
        typer.Option(
            "--lost", help="The node is dead and its disk is gone: move its regions first."
        ),
    ] = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Remove a node from the cluster. The error lists what still names the node."""
    with service(metasrv, as_json) as client:
        if lost and not dry_run:
            with procedure_bar("decommission") as tell:
                removed = client.nodes.decommission_lost(
                    node, reason, wait_s=wait, on_progress=tell
                )
        else:
            removed = client.nodes.decommission(node, reason, lost=lost, dry_run=dry_run)
    if as_json:
        show_json(removed)
    else:
        typer.echo(f"{removed.id} {'would be' if dry_run else 'is'} removed: {reason}")


def _show_nodes(
    nodes: Sequence[NodeBody], head: Sequence[str], row: Callable[[NodeBody], Sequence[object]]
) -> None:
    show_table(head, map(row, nodes))
    for line in held_lines(nodes):
        typer.echo(line)


def _node_row(node: NodeBody) -> tuple[object, ...]:
    age = _heard(node)
    return node.id, _state(node), node.address, node.zone, node.leads, age, f"{node.phi:.1f}"


def _wide_row(node: NodeBody) -> tuple[object, ...]:
    return (*_node_row(node), node.root, node.version, node.registered_at, _labels_text(node))


def _show(node: NodeBody, as_json: bool) -> None:
    if as_json:
        show_json(node)
    else:
        typer.echo(f"{node.id} is {_takes(node)}")


def _labels(changes: Sequence[str]) -> dict[str, str | None]:
    labels: dict[str, str | None] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals and not name.endswith("-"):
            raise typer.BadParameter(f"{change}: it is NAME=VALUE, as disk=ssd, or NAME-, as disk-")
        name = name if equals else name.removesuffix("-")
        if name in labels:
            raise typer.BadParameter(f"{name} is named twice")
        labels[name] = value if equals else None
    return labels


def _labels_text(node: NodeBody) -> str:
    return ", ".join(f"{name}={value}" for name, value in node.labels.items())


def _takes(node: NodeBody) -> str:
    return "open to new regions" if node.cordon is None else f"cordoned: {node.cordon.reason}"


def _state(node: NodeBody) -> str:
    return node.state if node.cordon is None else f"{node.state}, cordoned"


def held_lines(nodes: Iterable[NodeBody]) -> Iterator[str]:
    """`dn-3: failover held back since ...: 3 of 4 nodes look dead ..., until ...`"""
    for node in nodes:
        held = node.failover_held
        if held is not None:
            until = f"{held.ends} ({held.until})" if held.until else held.ends
            yield f"{node.id}: failover held back since {held.since}: {held.reason}; until {until}"


def _heard(node: NodeBody) -> str:
    return "never" if node.heard_ms_ago is None else f"{node.heard_ms_ago / 1000:.1f} s ago"
