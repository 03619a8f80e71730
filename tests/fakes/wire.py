"""The network between one server and the nodes: real requests and answers, and a fault at a call.

A request leaves as the bytes that HttpNodes has made, and is decoded at the door of its node; the
answer goes back in the same way. What can happen on the way is tests/fakes/faults.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson
from pydantic import BaseModel

from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable, Unknown
from metasrv_base.wire.node.copy_sessions import FetchingRegion
from metasrv_base.wire.node.orders import OrderRequest, OrderResponse
from metasrv_base.wire.problem.problems import problem_of
from tests.fakes.datanodes.plane import Plane
from tests.fakes.faults import Call, Fate, Mode, Plan, Work, befall


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it travels."""

    method: str
    node: str
    target: str
    """Path and query."""
    body: bytes


Door = Callable[[Sent], httpx.Response]
"""Raises httpx.TransportError where no answer comes back."""


def door(plane: Plane, cluster_id: str, sent: Sent) -> httpx.Response:
    """The answer of the node that *sent* is addressed to."""
    node = plane.nodes.get(sent.node)
    if node is None or not node.is_reached:
        raise httpx.ConnectError(f"nobody listens at {sent.node}")
    try:
        if sent.method == "POST":
            return _sound(_execute(plane, cluster_id, sent))
        return _sound(_read(plane, sent))
    except Unknown as error:
        raise httpx.ReadError(f"{sent.node} died") from error
    except MetaError as error:
        return _problem(error, sent.target)


def _execute(plane: Plane, cluster_id: str, sent: Sent) -> OrderResponse:
    request = OrderRequest.model_validate_json(sent.body)
    if (request.cluster_id, request.node_id) != (cluster_id, sent.node):
        raise Conflict("wrong-cluster", expected=cluster_id, found=request.cluster_id)
    results = plane.execute(sent.node, request.term, request.orders)
    return OrderResponse(results=list(results))


def _read(plane: Plane, sent: Sent) -> BaseModel:
    url = urlsplit(sent.target)
    if url.path == "/node/v1/inventory":
        region_id = parse_qs(url.query)["first"][0]
        return plane.storage.inventory(sent.node, f"{plane.nodes[sent.node].root}/", region_id)
    region_id, _, what = url.path.removeprefix("/node/v1/regions/").partition("/")
    if not what:
        return FetchingRegion(fetch=plane.nodes[sent.node].fetches.get(region_id))
    if what == "borrowed":
        return plane.nodes[sent.node].borrowed(region_id)
    query = parse_qs(url.query)
    whole = query.get("all") == ["true"]
    return plane.nodes[sent.node].snapshot(region_id, query["mark"][0], whole=whole)


def _sound(body: BaseModel) -> httpx.Response:
    return httpx.Response(200, content=body.model_dump_json())


def _problem(error: MetaError, target: str) -> httpx.Response:
    status, headers, body = problem_of(error, target, "r")
    return httpx.Response(status, headers=headers, content=orjson.dumps(body))


@dataclass
class NodeWire(httpx.AsyncBaseTransport):
    """One server's way to the nodes."""

    door: Door
    plan: Plan
    fate: Fate
    _strikes: list[tuple[Call, Callable[[Sent], bool]]] = field(default_factory=list)
    _overtaken: dict[str, list[Work]] = field(default_factory=dict)
    """Node -> requests that arrive behind the next one."""

    def strike(self, call: Call, is_it: Callable[[Sent], bool]) -> None:
        """The plan's mode happens to the next request that *is_it*."""
        self._strikes.append((call, is_it))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        sent = Sent(request.method, request.url.host, target, await request.aread())
        work = partial(self._arrives, sent)
        found = next((one for one in self._strikes if one[1](sent)), None)
        if found is None:
            try:
                return await work()
            finally:
                for overtaken in self._overtaken.pop(sent.node, ()):
                    await overtaken()
        self._strikes.remove(found)
        if self.plan.mode is Mode.OVERTAKEN:
            self._overtaken.setdefault(sent.node, []).append(partial(silently, work))
        try:
            return await befall(self.plan, self.fate, found[0], work)
        except Unknown as error:
            raise httpx.ReadError("the answer is lost") from error
        except Unavailable as error:
            raise httpx.ConnectError("the request is lost") from error
        except Refused as error:
            return _problem(error, target)

    async def _arrives(self, sent: Sent) -> httpx.Response:
        return self.door(sent)


async def silently(work: Work) -> None:
    """Nobody waits for the answer any more."""
    try:
        await work()
    except (MetaError, httpx.TransportError):
        return
