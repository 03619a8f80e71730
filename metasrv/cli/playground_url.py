"""The service of a playground that runs here, for a command that is told no URL."""

import json
from collections.abc import Mapping
from pathlib import Path

FOLDER_VARIABLE = "METASRV_PLAYGROUND_DATA_DIR"
FOLDER = ".run/playground"
"""The folder of `metasrv playground` without --data-dir."""
FILE = "playground.json"


def playground_url(environment: Mapping[str, str]) -> str | None:
    """URLs with commas between. None: none runs in the folder that `metasrv playground` would
    use."""
    folder = Path(environment.get(FOLDER_VARIABLE) or FOLDER)
    try:
        document = json.loads((folder / FILE).read_text())
        pids = document["pids"]["metasrv"].values()
        urls = ",".join(document["metasrv"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return urls if any(Path(f"/proc/{pid}").exists() for pid in pids) else None
