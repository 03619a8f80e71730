"""Calls of the REST API: reads that wait for what was written, changes that are sent once.

A change carries an idempotency key, so it is sent again until it is answered; a 202 is followed
until the procedure ends.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from metasrv.sdk.control.procedure import OnProgress, fault_of
from metasrv_base.errors import MetaError, Unknown
from metasrv_base.rng import Rng
from metasrv_base.rows.retry import SERVICE_BACKOFF, attempts, may_ask_again
from metasrv_base.wire.http.client import HttpAnswer, HttpClient, has_no_server

if TYPE_CHECKING:
    from metasrv_base.wire.api.cluster import RegionList
    from metasrv_base.wire.api.control import LockList
    from metasrv_base.wire.api.placing.placements import PlacementList, TablespaceList
    from metasrv_base.wire.api.procedures import ProcedureBody, ProcedureList
    from metasrv_base.wire.api.tables import CatalogList, SchemaList, TableList
    from metasrv_base.wire.api.versions import VersionList
    from metasrv_base.wire.language.views import ViewPage

M = TypeVar("M", bound=BaseModel)
P = TypeVar(
    "P",
    "CatalogList",
    "SchemaList",
    "TableList",
    "RegionList",
    "ProcedureList",
    "LockList",
    "VersionList",
    "PlacementList",
    "TablespaceList",
    "ViewPage",
)
PAGE = 500
"""Items of one answer of a list."""
LEARN_MS_MAX = 1_000
"""The time to read the list of servers, in ms: nobody waits longer for it."""
APPLIED_HEADER = "catalog-applied"
Params = Mapping[str, str | int | bool]

TRY_MS_MAX = 5_000
"""The time for which one server may be silent, in ms, beside the wait that the request asks for."""
DEFAULT_WAIT_S = 60.0
"""Seconds that a change waits for its end if the caller gives no `wait_s`."""
WAIT_S_MAX = 10
"""Seconds of one long poll: a follower that dies under it is noticed by then."""
WATCH_S = 1
"""Seconds of one long poll while somebody watches the progress."""
SETTLE_S = 0.1
"""Seconds between polls with the same answer: a server that does not wait must not cause a busy
loop."""


class ChangeOptions(TypedDict, total=False):
    """Keyword arguments of every change."""

    wait_s: float
    """Seconds to wait for the end, by default 60. Then Unknown with `procedure_id` is raised; the
    procedure goes on. 0: the answer comes once the change is accepted. Until then it is sent again
    within the patience of the client, however short the wait is."""
    on_progress: OnProgress
    idempotency_key: str
    """Default: a new one. The same key again is answered by the same procedure."""
    if_match: str
    """ETag of the table or placement as it was read; another one by now is a Conflict."""
    on_conflict: str
    """`fail`: do not queue behind another change."""
    dry_run: bool
    """Whether nothing is changed; the plan is raised then, as
    `metasrv.sdk.control.planned.Planned`."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A change before its conditions."""

    method: str
    path: str
    body: object = None
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DoneChange:
    """A change that is done."""

    document: Any
    """The body of the answer; None: there was none, or a procedure was followed."""
    procedure: "ProcedureBody | None"
    """The one that was followed; None: the answer was final."""
    is_missed: bool = False
    """The answer was final: the object did not exist, and `if_exists` was given."""

    @property
    def applied(self) -> bool:
        """Whether the change was made; False if the object did not exist (`if_exists`)."""
        result = (self.procedure and self.procedure.result) or {}
        return not self.is_missed and result.get("applied") is not False


class ControlService:
    """One session: what it wrote it reads, whichever server answers."""

    def __init__(self, http: HttpClient, rng: Rng, *, patience_ms: int) -> None:
        self._http = http
        self.expects_running = False
        """Whether an address without a server is an error at once, until a server has answered."""
        self._rng = rng
        self._patience_ms = patience_ms
        self._seen_version = 0

    @property
    def urls(self) -> tuple[str, ...]:
        return self._http.urls

    async def learn_servers(self) -> None:
        """The other servers, from whichever answers; none does: those we were given must do."""
        try:
            answer = await self._http.request("GET", "/v1/cluster", deadline_ms=LEARN_MS_MAX)
            self._http.learn(_urls_in(answer.json()))
        except MetaError:
            return

    async def read(self, model: type[M], path: str, params: Params | None = None) -> M:
        answer = await self._read(path, params or {})
        self._noted(answer.json())
        return answer.body(model)

    async def read_catalog(self, model: type[M], path: str, params: Params | None = None) -> M:
        """Reads at a catalog version that is no older than any that this session has seen."""
        freshness = {"min_version": self._seen_version} if self._seen_version else {}
        return await self.read(model, path, {**freshness, **(params or {})})

    async def pages(
        self, model: type[P], path: str, params: Params | None = None, *, of_catalog: bool = False
    ) -> AsyncGenerator[P, None]:
        """A list, page by page. *of_catalog*: as `read_catalog`."""
        read = self.read_catalog if of_catalog else self.read
        token: Params = {}
        while True:
            page = await read(model, path, {"page_size": PAGE, **(params or {}), **token})
            yield page
            if page.next_page_token is None:
                return
            token = {"page_token": page.next_page_token}

    async def change(
        self,
        method: str,
        path: str,
        body: object = None,
        params: Params | None = None,
        **options: Unpack[ChangeOptions],
    ) -> DoneChange:
        """Sends a change, and waits for its end. Raises the error of the service, or of the
        procedure."""
        until = asyncio.get_running_loop().time() + options.get("wait_s", DEFAULT_WAIT_S)
        request = Asking(method, path, body, params or {})
        answer = await self._send(request, until, options)
        if answer.status != 202:
            document = self._noted(answer.json()) if answer.content else None
            return DoneChange(document, None, answer.headers.get(APPLIED_HEADER) == "false")
        from metasrv_base.wire.api.procedures import ProcedureBody

        procedure = answer.body(ProcedureBody)
        followed = await self._follow(procedure, until, options)
        return DoneChange(None, followed)

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        params: Params | None = None,
        **options: Unpack[ChangeOptions],
    ) -> HttpAnswer:
        """A change whose answer is taken as it comes, 202 too: nothing is followed."""
        until = asyncio.get_running_loop().time() + options.get("wait_s", DEFAULT_WAIT_S)
        return await self._send(Asking(method, path, body, params or {}), until, options)

    async def follow(
        self, procedure_id: str, wait_s: float, on_progress: OnProgress | None = None
    ) -> "ProcedureBody":
        """Follows a procedure until it ends. Raises the error that ended it; Unknown: it has not
        ended yet."""
        from metasrv_base.wire.api.procedures import ProcedureBody

        until = asyncio.get_running_loop().time() + wait_s
        procedure = await self.read(ProcedureBody, f"/v1/procedures/{procedure_id}")
        options = ChangeOptions(wait_s=wait_s)
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self._follow(procedure, until, options)

    def may_ask_again(self, error: BaseException) -> bool:
        """Whether to send a repeatable request again after *error*, within the patience."""
        if self.expects_running and not self._http.has_answered and has_no_server(error):
            return False
        return may_ask_again(error)

    # -- inside

    async def _read(self, path: str, params: Params, wait_s: int = 0, etag: str = "") -> HttpAnswer:
        headers = {"prefer": f"wait={wait_s}"} if wait_s else {}
        if etag:
            headers["if-none-match"] = etag
        answer: HttpAnswer | None = None
        until = asyncio.get_running_loop().time() + self._patience_ms / 1000
        async for attempt in attempts(until, self._rng, SERVICE_BACKOFF, self.may_ask_again):
            with attempt:
                answer = await self._http.request(
                    "GET",
                    path,
                    params=params,
                    headers=headers,
                    deadline_ms=max(self._patience_ms, TRY_MS_MAX) + wait_s * 1000,
                    try_ms=min(self._patience_ms, TRY_MS_MAX) + wait_s * 1000,
                )
        assert answer is not None
        return answer

    async def _send(self, request: Asking, until: float, options: ChangeOptions) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        most_s = WATCH_S if "on_progress" in options else WAIT_S_MAX
        headers = {"idempotency-key": options.get("idempotency_key") or str(uuid.uuid4())}
        if if_match := options.get("if_match"):
            headers["if-match"] = if_match
        params = dict(request.params)
        if options.get("on_conflict") == "fail":
            params["on_conflict"] = "fail"
        if dry_run := options.get("dry_run", False):
            params["dry_run"] = "true"
        patient = loop.time() + self._patience_ms / 1000
        answer: HttpAnswer | None = None
        async for attempt in attempts(patient, self._rng, SERVICE_BACKOFF, self.may_ask_again):
            with attempt:
                wait_s = _whole_s(until - loop.time(), most_s)
                answer = await self._http.request(
                    request.method,
                    request.path,
                    json=request.body,
                    headers={**headers, "prefer": f"wait={wait_s}"},
                    params=params,
                    deadline_ms=2 * (TRY_MS_MAX + wait_s * 1000),
                    try_ms=TRY_MS_MAX + wait_s * 1000,
                )
        assert answer is not None
        if dry_run:
            from metasrv.sdk.control.planned import Planned

            raise Planned.of(answer)
        return answer

    async def _follow(
        self, procedure: "ProcedureBody", until: float, options: ChangeOptions
    ) -> "ProcedureBody":
        loop, on_progress = asyncio.get_running_loop(), options.get("on_progress")
        most_s = WATCH_S if on_progress is not None else WAIT_S_MAX
        etag = ""
        while True:
            if on_progress is not None:
                on_progress(procedure)
            if (error := fault_of(procedure)) is not None:
                raise error
            if procedure.done:
                self._noted(procedure.model_dump())
                return procedure
            if (left := until - loop.time()) <= 0:
                raise Unknown(
                    "outcome-unknown",
                    procedure_id=procedure.id,
                    reason=f"it is {procedure.state}, and goes on",
                    state=procedure.state,
                    waited_s=options.get("wait_s", DEFAULT_WAIT_S),
                )
            wait_s = _whole_s(left, most_s)
            answer = await self._read(f"/v1/procedures/{procedure.id}", {}, wait_s, etag)
            etag = answer.headers.get("etag", "")
            previous = procedure
            if answer.status != 304:
                procedure = answer.body(type(procedure))
            if procedure == previous:
                await asyncio.sleep(min(SETTLE_S, left))

    def _noted(self, document: Any) -> Any:
        version = document.get("catalog_version") if isinstance(document, dict) else None
        if isinstance(version, int):
            self._seen_version = max(self._seen_version, version)
        return document


def past(as_of: str | None) -> Params:
    """The query of a read as of a version of the catalog, as `version:17` or `17`, or of a time,
    as 2013-01-31T23:59:59Z; None: now."""
    if as_of is None:
        return {}
    return {"as_of": f"version:{as_of}" if as_of.isdecimal() else as_of}


def _whole_s(left_s: float, most_s: int) -> int:
    """Seconds of `Prefer: wait`, which are whole: no more than are left, to a tenth of a second,
    and than *most_s*."""
    return max(0, min(most_s, int(round(left_s, 1))))


def _urls_in(document: object) -> list[str]:
    """The URLs of the servers in an answer of `GET /v1/cluster`; its model would import those of
    nodes and regions."""
    servers = document.get("metasrvs", []) if isinstance(document, dict) else []
    urls = [server.get("url") for server in servers if isinstance(server, dict)]
    return [url for url in urls if isinstance(url, str)]
