"""The frontends that rows go through, as metasrv names them: whoever holds a schema lease.

Any of them serves, so requests are spread over all. One that does not answer is passed over; when
none does, metasrv is asked for those that there are by now. A request is sent again under the same
key, so it is done once. No answer is older than one before: each frontend is told the schema
version that it must know (docs/protocols.md P7).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypedDict, Unpack

import httpx

from metasrv.sdk.control.service import ControlService
from metasrv.sdk.rows.attempts import Copies
from metasrv.sdk.rows.spread import Spread
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from metasrv_base.rng import Rng
from metasrv_base.rows.retry import REGION_BACKOFF, attempts
from metasrv_base.wire.frontend.holders import SchemaLeaseList
from metasrv_base.wire.http.client import HttpAnswer, HttpClient
from metasrv_base.wire.http.pooled_transport import KeptTransport

TRY_MS = 12_000
"""The time for which one frontend may be silent, in ms: longer than a transaction lives, so that
its answer is heard."""
MARGIN_MS_MAX = 500
"""Time in ms by which a frontend is told to answer earlier than it is waited for: at most a tenth
of what there is. A refusal that has no time to be heard would be told as perhaps done."""
LOOK_S = 60.0
"""Seconds between reads of the list of frontends, while all is well."""
LOOK_AGAIN_S = 5.0
"""Seconds between reads of the list while nobody answers, as during an election."""
NONE_S = 10.0
"""Seconds that a call goes on once metasrv says that no frontend is registered: one that is started
again is back by then. Registrations outlive an election, so there are none to wait for."""
TABLES_MAX = 65_536
"""Tables whose newest schema version is kept: those that were answered last. A table that gives way
was not answered for as many others, which takes longer than a frontend may lag (P7)."""
NONE = "none is registered"
LOOK_S_MAX = 3.0
"""Seconds for one read of the list: the frontends known before may still do."""


class RequestArgs(TypedDict, total=False):
    """Keyword arguments of a request, as metasrv_base/wire/http/client.py has them."""

    json: object
    content: bytes
    headers: Mapping[str, str]
    repeatable: bool


class Frontends:
    """The frontends that one client uses."""

    def __init__(
        self,
        service: ControlService,
        rng: Rng,
        transport: httpx.AsyncBaseTransport | None = None,
        token: str | None = None,
    ) -> None:
        self._service = service
        self._rng = rng
        self._transport = transport or KeptTransport()
        self._token = token
        self._spread = Spread(())
        self._versions: dict[int, int] = {}
        """Table id -> the newest schema version that an answer was computed with, the table that
        was answered last at the end; TABLES_MAX at most."""
        self._is_told = False
        """Whether metasrv has ever said who there is."""
        self._look_at = 0.0
        """Seconds of the loop's clock."""
        self._looking: asyncio.Event | None = None
        """Set once the newest read of the list is over; None: nobody reads it."""

    def heard(self, table_id: int, schema_version: int) -> None:
        """An answer was computed with that version."""
        self._versions[table_id] = max(schema_version, self._versions.pop(table_id, 0))
        if len(self._versions) > TABLES_MAX:
            del self._versions[next(iter(self._versions))]

    def newest(self, table_id: int) -> int:
        """The newest heard of; 0: none."""
        return self._versions.get(table_id, 0)

    async def ask(
        self, method: str, path: str, until: float, copies: Copies, **sent: Unpack[RequestArgs]
    ) -> HttpAnswer:
        """Returns the first answer of a frontend; tries until *until*, of the loop's clock, and for
        NONE_S while none is registered.

        A request that is not repeatable by nature needs a key. Raises the last error, and notes in
        *copies* if a request was perhaps done.
        """
        answers: list[HttpAnswer] = []
        left_ms = (until - asyncio.get_running_loop().time()) * 1000
        margin_ms = max(1, min(MARGIN_MS_MAX, int(left_ms) // 10))
        last_at = until - margin_ms / 1000
        async for attempt in attempts(last_at, self._rng, REGION_BACKOFF, _Patience().again):
            with attempt:
                try:
                    answers = [await self._send(method, path, until, margin_ms, sent)]
                except Unknown:
                    copies.perhaps = True
                    raise
        return answers[0]

    async def close(self) -> None:
        await self._transport.aclose()

    # -- inside

    async def _send(
        self, method: str, path: str, until: float, margin_ms: int, sent: RequestArgs
    ) -> HttpAnswer:
        await self._look()
        now = asyncio.get_running_loop().time()
        order = self._spread.order(now)
        if not order:
            self._look_at = 0.0
            reason = NONE if self._is_told else "no metasrv says which there are"
            raise Unavailable("not-ready", what="a frontend", reason=reason)
        client = HttpClient(
            order, transport=self._transport, token=self._token, named_by=self._service.urls
        )
        left_ms = max(1, int((until - now) * 1000))
        try_ms = min(left_ms, TRY_MS)
        with self._spread.asking(order[0]):
            try:
                answer = await client.request(
                    method, path, deadline_ms=left_ms, try_ms=try_ms, margin_ms=margin_ms, **sent
                )
            except (Unavailable, Unknown):
                self._passed_over(order[:1])
                raise
        self._spread.answered(answer.url)
        self._passed_over(tuple(takewhile(lambda address: address != answer.url, order)))
        return answer

    def _passed_over(self, silent: Sequence[str]) -> None:
        now = asyncio.get_running_loop().time()
        for address in silent:
            self._spread.failed(address, now)
            self._look_at = 0.0

    async def _look(self) -> None:
        while self._looking is not None and not self._is_told:
            await self._looking.wait()  # not knowing yet is not knowing that there is none
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_AGAIN_S
        looking = self._looking = asyncio.Event()
        try:
            await self._read(now)
        except asyncio.CancelledError:
            self._look_at = 0.0  # another task looks
            raise
        finally:
            looking.set()
            self._looking = None

    async def _read(self, now: float) -> None:
        try:
            async with asyncio.timeout(LOOK_S_MAX):
                leases = await self._service.read(SchemaLeaseList, "/v1/schema-leases")
        except (MetaError, TimeoutError):
            return
        self._look_at = now + LOOK_S
        self._take(tuple(sorted(holder.address.rstrip("/") for holder in leases.holders)))

    def _take(self, addresses: tuple[str, ...]) -> None:
        self._is_told = True
        if set(addresses) != set(self._spread.addresses):
            self._spread.replace(sorted(addresses, key=lambda _: self._rng.random()))


@dataclass(slots=True)
class _Patience:
    """The patience of one call."""

    none_since: float | None = None
    """The time, of the loop's clock, since which no frontend is registered; None: some are."""

    def again(self, error: BaseException) -> bool:
        if not isinstance(error, Unavailable) or error.facts.get("reason") != NONE:
            self.none_since = None
            return _again(error)
        now = asyncio.get_running_loop().time()
        self.none_since = now if self.none_since is None else self.none_since
        return now < self.none_since + NONE_S


def _again(error: BaseException) -> bool:
    match error:
        case Unavailable():
            return error.code != "region-lost"  # a person must put the storage back
        case Unknown():
            return True
        case Conflict():
            return error.code == "transaction-too-old"
    return False
