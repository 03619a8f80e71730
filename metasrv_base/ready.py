"""Reports that a program listens: a line of JSON on stdout, and in a file if one is set."""

from collections.abc import Mapping
from pathlib import Path

import orjson


def announce(facts: Mapping[str, str | int], ready_file: Path | None) -> None:
    """The file is renamed into place, so that whoever sees it sees all of it."""
    line = orjson.dumps(facts).decode()
    print(line, flush=True)
    if ready_file is not None:
        unfinished = ready_file.with_name(ready_file.name + ".tmp")
        unfinished.write_text(line + "\n")
        unfinished.replace(ready_file)
