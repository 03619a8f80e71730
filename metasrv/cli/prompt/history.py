"""The history of the prompt: a file of the user alone, cut when a prompt starts.

Each input is an entry, with all of its lines, in the form of prompt_toolkit's FileHistory: a time
after `#`, then the lines after `+`.
"""

import os
from collections.abc import Mapping
from pathlib import Path

FILE = "metasrv/sql_history"
BYTES_MAX = 1 << 20
"""A longer file is cut to half of that."""
OWNER_ONLY = 0o600
FOLDER_OWNER_ONLY = 0o700
_ENTRY = b"\n# "


def history_path(environment: Mapping[str, str]) -> Path:
    """The file, in the folder of the user's state ($XDG_STATE_HOME)."""
    named = environment.get("XDG_STATE_HOME", "")
    state = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"
    return state / FILE


def prepare(path: Path) -> None:
    """Makes the file if there is none, for its owner alone, and cuts it. Raises OSError."""
    make(path)
    data = path.read_bytes() if path.stat().st_size > BYTES_MAX else b""
    if data:
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
        os.fchmod(descriptor, OWNER_ONLY)  # one that a prompt which was killed has left
        with os.fdopen(descriptor, "wb") as file:
            file.write(newest(data, BYTES_MAX // 2))
        new.replace(path)


def make(path: Path) -> None:
    """Makes the file if there is none, and takes it from others if they may read it. Raises
    OSError."""
    path.parent.mkdir(FOLDER_OWNER_ONLY, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWNER_ONLY)
    try:
        os.fchmod(descriptor, OWNER_ONLY)  # an older file
    finally:
        os.close(descriptor)


def newest(data: bytes, bytes_max: int) -> bytes:
    """The newest entries of a history, whole ones. Pure."""
    begin = data.find(_ENTRY, max(0, len(data) - bytes_max))
    return b"" if begin < 0 else data[begin:]
