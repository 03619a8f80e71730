"""Ports for programs that are killed and come back: nobody else is given theirs meanwhile.

The kernel takes the source of an outgoing connection from a range of its own. A server that listens
there may find its port taken when it comes back, even by a client that tried to reach it and, by
the chance of that choice, reached itself.
"""

import errno
import os
import re
import socket
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from metasrv_base.rng import Rng

LOWEST = 10_000  # below are many that are known by number
LOWEST_OUTGOING = 32_768  # of Linux, where it does not say
TRIES_MAX = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
RANGE_TEXT = re.compile(r"(\d{4,5})-(\d{4,5})")
PORTS = "PLAYGROUND_PORTS"
"""Environment: `10000-15000` keeps to these, without the last, so that two playgrounds side by side
do not take the port of a program of the other that is down."""


def free_ports(count: int, rng: Rng, host: str = "127.0.0.1") -> list[int]:
    """Different ones, free at this moment, and below those of outgoing connections if there is room
    below them. Raises OSError if nearly all are taken."""
    lowest, end = bounds()
    drawn = (lowest + int(rng.random() * (end - lowest)) for _ in range(TRIES_MAX))
    with ExitStack() as held:
        probes = ((port, held.enter_context(socket.socket())) for port in drawn)
        ports = list(islice((port for port, probe in probes if _takes(probe, host, port)), count))
    if len(ports) < count:
        raise OSError(errno.EADDRINUSE, f"not {count} free ports between {lowest} and {end}")
    return ports


def bounds() -> tuple[int, int]:
    """Returns the lowest port that may be drawn, and the first beyond. Raises OSError if `PORTS` is
    not a range."""
    if port_range := os.environ.get(PORTS):
        if not (match := RANGE_TEXT.fullmatch(port_range)):
            raise OSError(errno.EINVAL, f"{PORTS} is {port_range!r}, not like 10000-15000")
        return int(match[1]), int(match[2])
    lowest, end = LOWEST, _lowest_outgoing()
    return (lowest, end) if end - lowest >= 1_000 else (1_024, 65_536)


def shares(count: int) -> list[str]:
    """Splits the range into *count* equal parts, each a value of `PORTS`."""
    lowest, end = bounds()
    size = (end - lowest) // count
    return [f"{lowest + k * size}-{lowest + (k + 1) * size}" for k in range(count)]


def _takes(probe: socket.socket, host: str, port: int) -> bool:
    try:
        probe.bind((host, port))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return False
    return True


def _lowest_outgoing() -> int:
    try:
        return int(RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return LOWEST_OUTGOING
