"""`metasrv playground`: a whole cluster on this machine, until Ctrl-C or in the background."""

import asyncio
import os

import typer

from metasrv.cli.environment import found_folder
from metasrv.cli.options import EXIT_REFUSED, AsJson, show_errors
from metasrv.cli.output import show_json
from metasrv.cli.programs.playground_options import FOLDER, DataDir, flags_of, taking_options
from metasrv.cli.programs.playground_text import (
    not_started,
    show_serving,
    show_started,
    show_status,
    show_stopped,
)
from metasrv.cli.progress import EXIT_INTERRUPTED, ProgressBar, bar
from metasrv.playground.background import start as start_in_background
from metasrv.playground.background import stop as stop_in_background
from metasrv.playground.folder import LOG
from metasrv.playground.main import run
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.status import status_of
from metasrv_base.errors import Unavailable
from serving.launch import program

ENVIRONMENT = {"auto_envvar_prefix": "METASRV_PLAYGROUND"}
"""`--data-dir` is METASRV_PLAYGROUND_DATA_DIR too, as settings of programs are."""
LOOK_S = 0.1
EXIT_NOT_RUNNING = 1
VARIABLES = "Every flag is a variable too: --data-dir is METASRV_PLAYGROUND_DATA_DIR."
app = typer.Typer(epilog=VARIABLES)


def _foreground(options: PlaygroundOptions, as_json: bool) -> None:
    """Start etcd, metasrvs, datanodes and frontends; stop them all when this is stopped.

    With `start` they run in the background, until `stop`.
    """
    with show_errors(as_json), bar("starting", at_once=not as_json) as shown:
        up = _Up(options, shown, as_json)
        asyncio.run(run(options, up.ready, up.up))


def _start(options: PlaygroundOptions, as_json: bool) -> None:
    """Start a cluster in the background; return when it serves."""
    argv = [*program("metasrv.cli.main"), "playground", *flags_of(options)]
    with show_errors(as_json), bar("starting", at_once=not as_json) as shown:

        def wait(line: str) -> None:
            is_progress = line and not line.startswith((" ", "error"))
            shown.tell(line if is_progress else "starting", 0, None)
            shown.wait(LOOK_S)

        try:
            document = start_in_background(options.data_dir, argv, wait)
        except Unavailable as error:
            shown.close()
            if as_json:
                raise
            typer.echo("\n".join(not_started(options.data_dir / LOG, error)), err=True)
            raise typer.Exit(EXIT_REFUSED) from error
        except KeyboardInterrupt:
            shown.close()
            typer.echo("interrupted; nothing of the playground is left running", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        show_json(document)
    else:
        show_serving(document, options.data_dir)
        show_started(
            document, options.data_dir, is_found=options.data_dir == found_folder(os.environ)
        )


app.command("start", context_settings=ENVIRONMENT, epilog=VARIABLES)(taking_options(_start))


@app.command("stop", context_settings=ENVIRONMENT)
def stop(data_dir: DataDir = FOLDER, as_json: AsJson = False) -> None:
    """Stop the cluster that runs in the folder, and list the programs that ended."""
    folder = data_dir.resolve()
    with show_errors(as_json), bar("stopping"):
        stopped = stop_in_background(folder)
    show_stopped(folder, stopped, as_json)


@app.command("status", context_settings=ENVIRONMENT)
def status(data_dir: DataDir = FOLDER, as_json: AsJson = False) -> None:
    """Show whether a cluster runs in the folder, with its processes; exit code 1 if not all run."""
    playground_status = status_of(data_dir.resolve())
    if as_json:
        show_json(playground_status)
    else:
        show_status(playground_status)
    if not playground_status.is_healthy:
        raise typer.Exit(EXIT_NOT_RUNNING)


app.callback(invoke_without_command=True, context_settings=ENVIRONMENT)(taking_options(_foreground))


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
        else:
            show_serving(document, playground.settings.data_dir)
            urls = ",".join(document.metasrv)
            typer.echo(f"\nexport METASRV_URL={urls}\nmetasrv node list     # Ctrl-C stops it all")
