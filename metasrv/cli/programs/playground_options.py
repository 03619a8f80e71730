"""The options of `metasrv playground` and of its `start`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from metasrv.cli.errors.places import reason_of
from metasrv.cli.near import must_be_among
from metasrv.cli.options import AsJson
from metasrv.playground.plan import KEY_PREFIX, PlaygroundOptions

FOLDER = Path(".run/playground")
Run = Callable[[PlaygroundOptions, bool], None]


def _defaults_from(context: typer.Context, file: Path | None) -> Path | None:
    """Takes the table `playground` of a TOML file as defaults of the options."""
    if file is None:
        return None
    from metasrv_base.settings_list import table_of

    try:
        table = table_of(file, "playground")
    except (ValueError, TypeError, OSError) as error:
        raise typer.BadParameter(f"--config {file}: {reason_of(error)}") from error
    names = [str(param.name) for param in context.command.params]
    for name in table:
        must_be_among(name, names, f"--config {file}", "setting")
    context.default_map = dict(table)
    return file


Config = Annotated[
    Path | None,
    typer.Option(
        is_eager=True,
        callback=_defaults_from,
        metavar="FILE",
        help="A TOML file of settings; only its table `playground` is read.",
    ),
]
DataDir = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder of the cluster's files, which are kept.")
]
Metasrvs = Annotated[
    int, typer.Option(min=1, max=9, metavar="N", help="Number of metasrv servers.")
]
Datanodes = Annotated[int, typer.Option(min=0, max=64, metavar="N", help="Number of datanodes.")]
Frontends = Annotated[
    int,
    typer.Option(
        min=0, max=16, metavar="N", help="Number of frontends, which take statements on rows."
    ),
]
Zones = Annotated[
    int,
    typer.Option(
        min=1,
        max=64,
        metavar="N",
        help="Number of zones: copies of a region are in different ones.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        min=1, max=65535, metavar="PORT", help="Port of the first metasrv. Default: a free one."
    ),
]
Etcd = Annotated[
    str | None, typer.Option(metavar="URL", help="URLs of a running etcd. Default: start one.")
]
KeyPrefix = Annotated[
    str,
    typer.Option("--key-prefix", "--prefix", metavar="PREFIX", help="Prefix of all keys in etcd."),
]
Reset = Annotated[bool, typer.Option("--reset", help="Delete earlier data first.")]
Supervise = Annotated[bool, typer.Option("--supervise", help="Restart programs that end.")]


def _options(  # noqa: PLR0913  # a parameter is an option of the command
    context: typer.Context,
    config: Config = None,
    data_dir: DataDir = FOLDER,
    metasrvs: Metasrvs = 1,
    datanodes: Datanodes = 3,
    frontends: Frontends = 1,
    zones: Zones = 1,
    port: Port = None,
    etcd: Etcd = None,
    key_prefix: KeyPrefix = KEY_PREFIX,
    reset: Reset = False,
    supervise: Supervise = False,
    as_json: AsJson = False,
) -> tuple[PlaygroundOptions, bool] | None:
    """The options, and whether to print JSON; None: they are those of a command that follows.
    Raises BadParameter."""
    if context.invoked_subcommand is not None:
        _must_follow(context, context.invoked_subcommand)
        return None
    options = PlaygroundOptions(
        data_dir=data_dir.resolve(),
        metasrvs=metasrvs,
        datanodes=datanodes,
        frontends=frontends,
        zones=zones,
        port=port,
        etcd=tuple(url.strip() for url in (etcd or "").split(",") if url.strip()),
        key_prefix=key_prefix,
        reset=reset,
        supervise=supervise,
    )
    if faults := list(options.faults()):
        raise typer.BadParameter("; ".join(faults))
    return options, as_json


def taking_options(command: Run) -> Callable[..., None]:
    """*command* with the command-line options of a playground."""

    @wraps(_options)
    def taking(**values: Any) -> None:
        options = _options(**values)
        if options is not None:
            command(*options)

    taking.__doc__ = command.__doc__
    return taking


def _must_follow(context: typer.Context, subcommand: str) -> None:
    """Raises BadParameter for options that stand before *subcommand*, which would not see them."""
    for param in context.command.params:
        source = context.get_parameter_source(str(param.name))
        if source is not None and source.name == "COMMANDLINE":
            flag = param.opts[0]
            raise typer.BadParameter(f"{flag}: give it after `{subcommand}`, which takes it")


def flags_of(options: PlaygroundOptions) -> list[str]:
    """The flags of `metasrv playground` that mean *options*."""
    values = {
        "data-dir": options.data_dir,
        "metasrvs": options.metasrvs,
        "datanodes": options.datanodes,
        "frontends": options.frontends,
        "zones": options.zones,
        "port": options.port,
        "etcd": ",".join(options.etcd) or None,
        "key-prefix": options.key_prefix,
    }
    switches = {"reset": options.reset, "supervise": options.supervise}
    return [
        *(f"--{name}={value}" for name, value in values.items() if value is not None),
        *(f"--{name}" for name, is_on in switches.items() if is_on),
    ]
