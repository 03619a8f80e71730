"""The command line: each command is a module, imported only when it is the one called.

A module holds `app` (a Typer, for a command with sub-commands) or `command` (a function), and for
that, if it needs any, `settings` (arguments of Typer's `command`). Add a command by one row of
PANELS.
"""

import errno
import gc
import importlib
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import cleandoc
from typing import Annotated, Any

import typer

from metasrv.cli.complete import context_names
from metasrv.cli.contexts.contexts import VARIABLE
from metasrv.cli.extras import install, lacking
from metasrv.cli.programs.help_names import PlainGroup
from metasrv.program.version import VERSION
from serving.left_out import leave_out_httpx_command, leave_out_typer_values

# Heading in the help -> its commands: each a name, its module, what it does.
PANELS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Catalog": (
        ("table", "metasrv.cli.catalog.table", "Create, show, change and drop tables."),
        ("index", "metasrv.cli.catalog.index", "Create, show and drop indexes."),
        ("schema", "metasrv.cli.catalog.schema", "Create, show and drop schemas."),
        ("catalog", "metasrv.cli.catalog.catalog", "Create, show and drop catalogs."),
        (
            "tablespace",
            "metasrv.cli.placing.tablespace",
            "Create, change and drop tablespaces, whose tables keep their regions together.",
        ),
        (
            "placement",
            "metasrv.cli.placing.placement",
            "Create, change and drop placements, which choose nodes and engines of regions.",
        ),
        ("sql", "metasrv.cli.language.sql", "Carry out SQL statements."),
        (
            "apply",
            "metasrv.cli.language.apply",
            "Bring the catalog to the state that files declare.",
        ),
        (
            "diff",
            "metasrv.cli.language.diff",
            "Show what `apply` would do; exit code 2: there is a difference.",
        ),
        (
            "batch",
            "metasrv.cli.catalog.batch",
            "Carry out the commands of a file in one version of the catalog, all or none.",
        ),
        ("show", "metasrv.cli.language.show", "Show a view of the information schema."),
        (
            "events",
            "metasrv.cli.cluster.events",
            "Show what changes in the catalog, as it happens.",
        ),
    ),
    "Rows": (
        ("row", "metasrv.cli.rows.row", "Look up, insert, change or delete one row."),
        ("scan", "metasrv.cli.rows.scan", "Read the rows of a table."),
        ("count", "metasrv.cli.rows.count", "Count the rows of a table."),
        (
            "import",
            "metasrv.cli.rows.import_rows",
            "Load a Parquet, CSV or NDJSON file into a table.",
        ),
        (
            "export",
            "metasrv.cli.rows.export",
            "Write a table to a file; or definitions, as `apply` reads them.",
        ),
    ),
    "Changes": (
        (
            "explain",
            "metasrv.cli.cluster.explain",
            "Show what a change would do, step by step, and why it is safe.",
        ),
        ("procedure", "metasrv.cli.cluster.procedure", "Follow, pause and cancel changes."),
        (
            "schema-lease",
            "metasrv.cli.cluster.schema_lease",
            "Show which frontends hold schema leases, and which block a change.",
        ),
    ),
    "Cluster": (
        (
            "cluster",
            "metasrv.cli.cluster.cluster",
            "Show the leader; switch maintenance mode, or pause all procedures.",
        ),
        ("node", "metasrv.cli.cluster.node", "Show, drain and remove datanodes."),
        ("region", "metasrv.cli.cluster.region", "Show where each region is."),
        (
            "failover",
            "metasrv.cli.cluster.failover",
            "Fail over the regions of a node to other nodes now.",
        ),
        (
            "setting",
            "metasrv.cli.cluster.setting",
            "Show and change the settings of a running service.",
        ),
        ("top", "metasrv.cli.cluster.top", "Show leader, nodes, leases and procedures, live."),
        (
            "check",
            "metasrv.cli.tools.check",
            "Verify the invariants of a cluster on its keys and files.",
        ),
        (
            "backup",
            "metasrv.cli.tools.backup",
            "Write the metadata of a cluster to a file; verify and restore a file.",
        ),
        (
            "context",
            "metasrv.cli.tools.context",
            "Name services, and choose the one that commands connect to.",
        ),
        (
            "token",
            "metasrv.cli.tools.token",
            "Create tokens, which a service beyond loopback requires.",
        ),
    ),
    "Programs": (
        ("playground", "metasrv.cli.programs.playground", "Run a whole cluster on this machine."),
        (
            "demo",
            "metasrv.cli.programs.demo",
            "Load real data while nodes, leaders and Spark are killed.",
        ),
        (
            "server",
            "metasrv.cli.programs.server",
            "Run one metasrv; `metasrv server --help` has its flags.",
        ),
        (
            "datanode",
            "metasrv.cli.programs.datanode",
            "Run one datanode; `metasrv datanode --help` has its flags.",
        ),
        (
            "frontend",
            "metasrv.cli.programs.frontend",
            "Run one frontend; `metasrv frontend --help` has its flags.",
        ),
        (
            "config",
            "metasrv.cli.tools.config",
            "Show every setting of the programs, its value and its source.",
        ),
        (
            "doctor",
            "metasrv.cli.tools.doctor",
            "Show what this machine lacks for metasrv, and how to install it.",
        ),
    ),
}
COMMANDS = tuple(row for rows in PANELS.values() for row in rows)

CONTEXT = "--context"
COMPLETING = "_METASRV_COMPLETE"
"""Set by the shell that asks for completions."""
PLUGINS_OFF = "PYDANTIC_DISABLE_PLUGINS"
"""Keeps pydantic from reading the metadata of all installed packages for plugins of its own."""
OBJECTS = 50_000
"""New objects between two collections of garbage. Imports make many and leave none: with Python's
700, collections are a tenth of a short command."""
EXIT_NEEDS = 2
EXIT_REFUSED = 1
EXIT_INTERRUPTED = 130
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Failures of a write to stdout; a pipe that nobody reads is none."""
EXIT_CODES = (
    "Exit codes: 0 done, or accepted with --wait 0; 1 refused; 2 wrong usage, or no service "
    "answered; 3 a wait ran out and the change goes on; 130 interrupted."
)
ANY_WORDS: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}


def main(argv: Sequence[str] | None = None) -> None:
    gc.set_threshold(OBJECTS)
    os.environ.setdefault(PLUGINS_OFF, "__all__")
    leave_out_httpx_command()
    args = list(sys.argv[1:] if argv is None else argv)
    first = command_word(args)
    if COMPLETING in os.environ:
        from metasrv.cli.programs.bash_words import join_words_of_bash

        leave_out_typer_values()
        join_words_of_bash()
        first = _completed_command(os.environ)
    commands = [name for name, _, _ in COMMANDS if first == [name]]
    try:
        application(commands)(args, prog_name="metasrv")
    except KeyboardInterrupt:  # before the command began
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        leave_stdout()
        sys.exit(EXIT_REFUSED)


def application(commands: Collection[str]) -> typer.Typer:
    """Every command by name and help; only the wanted ones are imported."""
    app = typer.Typer(
        cls=PlainGroup,
        help="The control plane of a distributed table store.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for panel, rows in PANELS.items():
        for row in rows:
            _add(app, panel, row, is_wanted=row[0] in commands)
    return app


def _add(app: typer.Typer, panel: str, row: tuple[str, str, str], *, is_wanted: bool) -> None:
    name, path, summary = row
    shown: dict[str, Any] = {"help": summary, "rich_help_panel": panel}
    extras = lacking(name) if is_wanted else ()
    if extras:
        app.command(name, **shown, **ANY_WORDS)(_needs(name, extras))
        return
    module: object = importlib.import_module(path) if is_wanted else None
    group = getattr(module, "app", None)
    if group is None:
        settings = getattr(module, "settings", {})
        command = getattr(module, "command", _nothing)
        if command.__doc__:  # it says more than a line of the list
            shown["help"] = _paragraphs(command.__doc__)
        app.command(name, **shown, **settings)(command)
    else:
        app.add_typer(group, name=name, **shown)


def _paragraphs(docstring: str) -> str:
    """The paragraphs of a docstring, each on one line: a terminal has a width of its own."""
    paragraphs = cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _completed_command(environment: Mapping[str, str]) -> list[str]:
    """The command of the line that the shell completes; none while it is being written."""
    line = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or ""
    return command_word([word for word in line.split()[1:] if word != "="])


def command_word(words: Sequence[str]) -> list[str]:
    """The command among the words of a line, behind `--context NAME`; empty if there is none."""
    rest = list(words)
    while rest and rest[0].partition("=")[0] == CONTEXT:
        del rest[: 1 if "=" in rest[0] else 2]
    return rest[:1]


def _needs(name: str, extras: tuple[str, ...]) -> Callable[[], None]:
    """A command of which a part is not installed: it says which."""

    def command() -> None:
        typer.echo(
            f"metasrv {name} needs packages that are not installed: {install(*extras)}", err=True
        )
        raise typer.Exit(EXIT_NEEDS)

    return command


def leave_stdout() -> None:
    """Sends the rest of the buffer of stdout nowhere, so that the interpreter does not fail on
    it once more as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nothing() -> None:
    return None


def _root(
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version.")] = False,
    context: Annotated[
        str | None,
        typer.Option(
            CONTEXT,
            help="Connect to the service of this context, not to METASRV_URL. Give it before the"
            " command. Default: METASRV_CONTEXT, then the context of `metasrv context use`.",
            metavar="CONTEXT",
            autocompletion=context_names,
        ),
    ] = None,
) -> None:
    """Runs before every command, so that a single one keeps its name."""
    if version:
        typer.echo(f"metasrv {VERSION}")
        raise typer.Exit
    if context is not None:
        os.environ[VARIABLE] = context
        os.environ.pop("METASRV_URL", None)


if __name__ == "__main__":
    main()
