"""The header of every report (command, machine, versions) and the lines with its medians."""

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from metasrv.host.toolchain import checkout, read_toolchain

ROUNDS = 5


def head(command: str, rounds: int = ROUNDS) -> None:
    print(f"{command}; medians of {rounds}")
    print(f"{platform.platform()}, {os.cpu_count()} cores, {_memory_gib()} GiB")
    ours = ", ".join(f"{name} {version(name)}" for name in ("fastapi", "uvicorn", "pyarrow"))
    print(f"Python {platform.python_version()}, {ours}, {_etcd()}", flush=True)


def line(what: str, values: Iterable[float], unit: str, digits: int = 0) -> float:
    """The median of *values*, printed with their extremes; it is returned."""
    known = list(values)
    middle = statistics.median(known)
    low, high = min(known), max(known)
    print(
        f"{what:52}{middle:12,.{digits}f} {unit:8}({low:,.{digits}f} to {high:,.{digits}f})",
        flush=True,
    )
    return middle


def ratio(what: str, parts: Sequence[float], wholes: Sequence[float]) -> None:
    """Prints the ratio of two quantities that were measured side by side, round by round."""
    line(what, [part / whole for part, whole in zip(parts, wholes, strict=True)], "", 2)


def resident_mib(pid: int) -> float:
    """VmRSS of proc(5)."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def _memory_gib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30


def _etcd() -> str:
    chosen = read_toolchain(checkout())
    if chosen is None or chosen.etcd is None:
        return "no etcd"
    told = subprocess.run(
        [chosen.etcd.path, "--version"], capture_output=True, text=True, check=True
    )
    return "etcd " + told.stdout.partition("etcd Version: ")[2].partition("\n")[0]
