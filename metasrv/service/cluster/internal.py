"""Checks messages of nodes, and passes them to the leader's `NodeLiveness`."""

import os
from collections.abc import Iterator

from keys.model.cluster import DATANODE
from metasrv.service.named import is_node_id, is_region_id, no_node_id, no_region_id
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import Turns, by_turns, slices
from metasrv_base.wire.http.addresses import is_base_url
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.problem.problems import FieldError, refuse

TEXT_CHARS_MAX = 4_096  # of an address, a folder, a zone, a version


async def register(
    state: ServerState, node_id: str, request: RegisterRequest, by: str | None
) -> RegisterAnswer:
    """Registers a datanode. *by* is the holder of the token that was shown; None if no tokens are
    in use.

    Raises NotLeader with the leader's URL where another server leads, and as
    `NodeLiveness.register`.
    """
    term = state.led()
    refuse(tuple(_wrong_registration(node_id, request)))
    return await term.nodes.register(request, by)


async def heartbeat(
    state: ServerState, node_id: str, request: HeartbeatRequest, by: str | None
) -> HeartbeatAnswer:
    """Raises NotLeader, as `register`, and as `NodeLiveness.heartbeat`."""
    term = state.led()
    refuse(await by_turns(_wrong_heartbeat(node_id, request)))
    return await by_turns(term.nodes.hear(request, by))


def _wrong_registration(node_id: str, request: RegisterRequest) -> Iterator[FieldError]:
    yield from wrong_node(node_id, request.node_id)
    if request.role != DATANODE:
        yield FieldError(pointer="/role", detail=f"only {DATANODE} registers here")
    if not is_base_url(request.address):
        detail = "http or https, the host of a node and a port, and nothing else"
        yield FieldError(pointer="/address", detail=detail)
    texts = {
        "incarnation": request.incarnation,
        "zone": request.zone,
        "root": request.root,
        "version": request.version,
    }
    for name, text in texts.items():
        if not 0 < len(text) <= TEXT_CHARS_MAX:
            yield FieldError(pointer=f"/{name}", detail=f"1 to {TEXT_CHARS_MAX} characters")
    if not _is_folder(request.root):
        yield FieldError(pointer="/root", detail="an absolute path, without . or .. in it")


def _wrong_heartbeat(node_id: str, request: HeartbeatRequest) -> Turns[tuple[FieldError, ...]]:
    errors = list(wrong_node(node_id, request.node_id))
    region_ids: set[str] = set()
    for numbered in slices(enumerate(request.regions.region_id)):
        for position, region_id in numbered:
            here = f"/regions/region_id/{position}"
            if not is_region_id(region_id):
                errors.append(no_region_id(here))
            elif region_id in region_ids:
                errors.append(FieldError(pointer=here, detail="the region is listed twice"))
            region_ids.add(region_id)
        yield
    return tuple(errors)


def wrong_node(node_id: str, body_id: str) -> Iterator[FieldError]:
    if not is_node_id(node_id):
        yield no_node_id("/node_id")
    elif body_id != node_id:
        yield FieldError(pointer="/node_id", detail=f"the path says {node_id}")


def _is_folder(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path and "\0" not in path
