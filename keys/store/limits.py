"""Limits of one transaction, checked before it is sent, the same for every store."""

from keys.store.kv import TXN_BYTES_MAX, TXN_OPS_MAX, Compare, Get, Put, Request
from metasrv_base.errors import Refused


def check_limits(request: Request) -> None:
    """Raises Refused("ddl-too-large") with the numbers. A key written twice is our own mistake."""
    counts = {
        "compares": len(request.compares),
        "operations": len(request.writes) + len(request.reads),
        "refusal_reads": len(request.on_refusal),
    }
    size = request_bytes(request)
    if max(counts.values()) > TXN_OPS_MAX or size > TXN_BYTES_MAX:
        raise Refused(
            "ddl-too-large",
            bytes=size,
            bytes_max=TXN_BYTES_MAX,
            operations_max=TXN_OPS_MAX,
            **counts,
        )
    written = [write.key for write in request.writes]
    assert len(set(written)) == len(written), "a key is written twice"


def request_bytes(request: Request) -> int:
    """Keys and values of *request*; framing and the cluster's prefix come on top."""
    size = 0
    named: tuple[Compare | Get, ...] = (*request.compares, *request.reads, *request.on_refusal)
    for each in named:
        size += len(each.key) + len(each.end or b"")
    for write in request.writes:
        size += len(write.key) + (len(write.value) if isinstance(write, Put) else 0)
    return size
