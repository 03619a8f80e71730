"""The service that a client command asks, by variables and the files of the user."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from metasrv.cli.contexts.contexts import context_in_use, read_contexts
from metasrv.playground.holder import recorded

FOLDER_VARIABLE = "METASRV_PLAYGROUND_DATA_DIR"
FOLDER = ".run/playground"
"""The folder of `metasrv playground` without --data-dir."""
FILE = "playground.json"
TOKEN = "METASRV_TOKEN"
PATIENCE = "METASRV_PATIENCE"
"""Seconds for which a command waits for a service that is silent, or is not there yet."""
TOKEN_FILE = "METASRV_TOKEN_FILE"
PATIENCE_S_MAX = 3_600


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The service that a command asks."""

    url: str
    """URLs with commas between."""
    token: str | None


def service_address(environment: Mapping[str, str], url: str | None) -> ServiceAddress | None:
    """The service at *url*, else that of the context in use, else the playground that runs here;
    None without any. The token of the variables is not sent to the service of a context, nor that
    of a context to another. Raises BadParameter."""
    if url:
        return ServiceAddress(url, token_of(environment))
    name = context_in_use(environment)
    if name is not None:
        context = read_contexts(environment).get(name)
        return ServiceAddress(context.metasrv, context.token())
    here = playground_url(environment)
    return None if here is None else ServiceAddress(here, token_of(environment))


def playground_url(environment: Mapping[str, str]) -> str | None:
    """URLs with commas between. None: none runs in the folder that `metasrv playground` would
    use."""
    folder = found_folder(environment)
    holder = recorded(folder)
    if holder is None or not holder.is_running:
        return None
    try:
        document = json.loads((folder / FILE).read_text())
        return ",".join(document["metasrv"]) or None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def found_folder(environment: Mapping[str, str]) -> Path:
    """The folder in which a playground is looked for, absolute."""
    return Path(environment.get(FOLDER_VARIABLE) or FOLDER).resolve()


def patience_ms(environment: Mapping[str, str]) -> int | None:
    """METASRV_PATIENCE in ms; None: it is not set. Raises BadParameter for no number of seconds."""
    text = environment.get(PATIENCE, "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= PATIENCE_S_MAX:
        raise typer.BadParameter(f"{PATIENCE}: {text} is no number of seconds up to an hour")
    return int(seconds * 1000)


def token_of(environment: Mapping[str, str]) -> str | None:
    """METASRV_TOKEN, or the first line of the file METASRV_TOKEN_FILE. Never a flag: flags are
    seen by whoever lists processes."""
    if TOKEN in environment:
        token = environment[TOKEN]
        if not (token.isascii() and token.isprintable()):
            raise typer.BadParameter(f"{TOKEN}: a token is printable ASCII, without line breaks")
        return token
    path = environment.get(TOKEN_FILE)
    if not path:
        return None
    from metasrv_base.token import optional_token

    try:
        return optional_token(Path(path))
    except ValueError as error:
        raise typer.BadParameter(f"{TOKEN_FILE}: {error}") from error
