"""`metasrv context`: names for services, so that a command need not be told their URLs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.complete import context_names
from metasrv.cli.contexts.contexts import (
    VARIABLE,
    NamedService,
    context_in_use,
    read_contexts,
    write_contexts,
)
from metasrv.cli.forms import Output, form_of, show_form
from metasrv.cli.options import AsJson, with_scheme
from metasrv.cli.output import show, show_facts, show_table

app = typer.Typer(no_args_is_help=True)
NameArg = Annotated[
    str,
    typer.Argument(metavar="CONTEXT", help="Name of a context.", autocompletion=context_names),
]
SetUrl = Annotated[
    str | None,
    typer.Option("--metasrv", help="URLs of the service, separated by commas.", metavar="URL"),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the token of the service; every command reads it.", metavar="FILE"
    ),
]


@app.command("list")
def list_(output: Output = None, as_json: AsJson = False) -> None:
    """List contexts; `*` marks the one in use."""
    contexts, used = read_contexts(os.environ), context_in_use(os.environ)
    shown = [_document(name, context, used) for name, context in contexts.by_name.items()]
    rows = [
        ("*" if name == used else "", name, context.metasrv, context.token_file)
        for name, context in contexts.by_name.items()
    ]
    head = ("", "context", "metasrv", "token file")
    show_form(form_of(output, as_json), shown, contexts.by_name, lambda: show_table(head, rows))


@app.command("get")
def get(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CONTEXT", help="Default: the one in use.", autocompletion=context_names
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show one context."""
    used = context_in_use(os.environ)
    name = name or used
    if name is None:
        raise typer.BadParameter("no context is used: `metasrv context use CONTEXT`, or name one")
    document = _document(name, read_contexts(os.environ).get(name), used)
    show(document, as_json, lambda: show_facts(document))


@app.command("set")
def set_(
    name: NameArg,
    metasrv: SetUrl = None,
    token_file: TokenFile = None,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a context, or change the options that are given."""
    contexts = read_contexts(os.environ)
    old = contexts.by_name.get(name)
    if old is None and metasrv is None:
        raise typer.BadParameter(f"there is no context {name} yet: say its URL with --metasrv")
    url = _checked(metasrv) if metasrv is not None else old.metasrv if old is not None else ""
    path = None if old is None else old.token_file
    if token_file is not None:
        path = str(token_file.expanduser().absolute())
    context = NamedService(url, path)
    context.token()  # a file that cannot be used is told now
    contexts = contexts.with_context(name, context)
    write_contexts(os.environ, contexts.using(name) if use else contexts)
    document = _document(name, context, context_in_use(os.environ))
    show(document, as_json, lambda: typer.echo(f"context {name} is {context.metasrv}"))


@app.command("use")
def use(
    name: Annotated[
        str | None,
        typer.Argument(metavar="CONTEXT", help="Name of a context.", autocompletion=context_names),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no context from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose the context of all commands that name no other service."""
    if (name is None) is not none:
        raise typer.BadParameter("name a context, or say --none")
    write_contexts(os.environ, read_contexts(os.environ).using(name))
    over = os.environ.get(VARIABLE)
    hint = f"; {VARIABLE}={over} goes before it here" if over and over != name else ""
    text = "no context is used" if name is None else f"context {name} is used"
    show({"current": name}, as_json, lambda: typer.echo(f"{text}{hint}"))


@app.command("remove")
def remove(name: NameArg, as_json: AsJson = False) -> None:
    """Remove a context. The service and the file of its token do not change."""
    write_contexts(os.environ, read_contexts(os.environ).without(name))
    show({"removed": name}, as_json, lambda: typer.echo(f"context {name} removed"))


def _document(name: str, context: NamedService, used: str | None) -> dict[str, object]:
    return {
        "name": name,
        "metasrv": context.metasrv,
        "token_file": context.token_file,
        "used": name == used,
    }


def _checked(url: str) -> str:
    """*url* with its scheme. Raises BadParameter for what is no URL."""
    from metasrv.sdk.urls import urls_of
    from metasrv_base.errors import Refused

    try:
        return ",".join(urls_of(with_scheme(url)))
    except Refused as error:
        raise typer.BadParameter(f"{url} is not a URL; one is http://127.0.0.1:4620") from error
