"""The service of a playground that runs here, for a command that is told no URL."""

import json
from collections.abc import Mapping
from pathlib import Path

from metasrv.playground.holder import recorded

FOLDER_VARIABLE = "METASRV_PLAYGROUND_DATA_DIR"
FOLDER = ".run/playground"
"""The folder of `metasrv playground` without --data-dir."""
FILE = "playground.json"


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
