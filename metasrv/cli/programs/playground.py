"""`metasrv playground`: a whole cluster on this machine until Ctrl-C."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.near import must_be_among
from metasrv.cli.options import AsJson, told
from metasrv.cli.output import show_facts, show_json
from metasrv.cli.progress import ProgressBar, bar
from metasrv.playground.main import run
from metasrv.playground.plan import KEY_PREFIX, PlaygroundOptions
from metasrv.playground.playground import Playground

settings = {"context_settings": {"auto_envvar_prefix": "METASRV_PLAYGROUND"}}
"""Settings of the Typer command: `--data-dir` is METASRV_PLAYGROUND_DATA_DIR too, as settings of
programs are."""


def _defaults_from(context: typer.Context, file: Path | None) -> Path | None:
    """Takes the table `playground` of a TOML file as defaults of the options."""
    if file is None:
        return None
    from metasrv_base.settings_list import table_of

    try:
        table = table_of(file, "playground")
    except (ValueError, TypeError, OSError) as error:
        raise typer.BadParameter(f"--config {file}: {error}") from error
    names = [str(param.name) for param in context.command.params]
    for name in table:
        must_be_among(name, names, f"--config {file}", "setting")
    context.default_map = dict(table)
    return file


def command(  # noqa: PLR0913  # a parameter is an option of the command
    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            callback=_defaults_from,
            help="A TOML file; its table `playground` counts.",
        ),
    ] = None,
    data_dir: Annotated[
        Path, typer.Option(help="Folder of the cluster's files, which are kept.")
    ] = Path(".run/playground"),
    metasrvs: Annotated[int, typer.Option(min=1, max=9, help="Number of metasrv servers.")] = 1,
    datanodes: Annotated[int, typer.Option(min=0, max=64, help="Number of datanodes.")] = 3,
    frontends: Annotated[
        int, typer.Option(min=0, max=16, help="Number of frontends, which take statements on rows.")
    ] = 1,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the first metasrv. Default: a free one."),
    ] = None,
    etcd: Annotated[
        str | None, typer.Option(help="URLs of a running etcd. Default: start one.")
    ] = None,
    key_prefix: Annotated[
        str, typer.Option("--key-prefix", "--prefix", help="Prefix of all keys in etcd.")
    ] = KEY_PREFIX,
    reset: Annotated[bool, typer.Option("--reset", help="Delete earlier data first.")] = False,
    supervise: Annotated[
        bool, typer.Option("--supervise", help="Restart programs that end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start etcd, metasrvs, datanodes and frontends; stop them all when this is stopped."""
    urls = tuple(url.strip() for url in (etcd or "").split(",") if url.strip())
    settings = PlaygroundOptions(
        data_dir=data_dir.resolve(),
        metasrvs=metasrvs,
        datanodes=datanodes,
        frontends=frontends,
        port=port,
        etcd=urls,
        key_prefix=key_prefix,
        reset=reset,
        supervise=supervise,
    )
    if faults := list(settings.faults()):
        raise typer.BadParameter("; ".join(faults))
    with told(as_json), bar("starting", at_once=not as_json) as shown:
        up = _Up(settings, shown, as_json)
        asyncio.run(run(settings, up.ready, up.up))


class _Up:
    """Prints the progress of the start, and the addresses when the cluster is up."""

    def __init__(self, settings: PlaygroundOptions, shown: ProgressBar, as_json: bool) -> None:
        own = 0 if settings.etcd else 1
        self._total = own + settings.metasrvs + settings.datanodes + settings.frontends
        self._ready = 0
        self._shown = shown
        self._as_json = as_json

    def ready(self, id: str) -> None:
        self._ready += 1
        if self._ready <= self._total:
            self._shown.tell(f"{id} is ready", self._ready, self._total)

    def up(self, playground: Playground) -> None:
        self._shown.close()
        document = playground.document
        if self._as_json:
            show_json(document)
            return
        facts: dict[str, object] = {"metasrv": document.metasrv, "etcd": document.etcd}
        facts.update({id: node.url for id, node in document.datanodes.items()})
        facts.update({id: frontend.url for id, frontend in document.frontends.items()})
        facts["data"] = str(playground.settings.data_dir)
        show_facts(facts)
        urls = ",".join(document.metasrv)
        typer.echo(f"\nexport METASRV_URL={urls}\nmetasrv node list     # Ctrl-C stops it all")
