"""Clients that change the catalog while it breaks, and remember what they were told.

Every change bears a token that nobody else uses (a new name, the value of an option), so that the
log tells whether it happened, and how often. Told `ok`: it must have, once. Told `fail`: never.
`maybe`: at most once. Some changes are sent again with the same key until an answer is final, some
once with patience, some are sent and forgotten.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

from metasrv_base.clock import SystemClock
from tests.process.harness.rig import table_spec

PUBLIC = "/v1/catalogs/main/schemas/public/tables"
SCHEMAS = "/v1/catalogs/main/schemas"
FINAL = frozenset({"succeeded", "cancelled", "rolled_back", "failed"})
# Answers that say: nothing was done. 503 too; 504 says that it is not known.
NOT_DONE = frozenset({404, 409, 412, 422, 429, 503})
PAUSE_MS = 100
ANSWER_S = 8.0
SHARED = ("shared_a", "shared_b", "shared_c")
MINE_MAX = 6  # tables that one client keeps


class Manner(Enum):
    """A client's reaction to a request without an answer."""

    RETRIES = "retries"
    ONCE = "once"
    FORGETS = "forgets"


@dataclass(slots=True)
class Attempt:
    """One change as it was asked for, and what its client knows of it."""

    op: str
    token: str
    """Found in the log if it happened."""
    method: str
    path: str
    body: Any = None
    key: str = ""
    told: str = "maybe"
    procedure: str | None = None
    version: int | None = None
    sent: int = 0
    begun_ms: int = 0
    told_ms: int = 0
    """When its client had its last word."""


@dataclass(slots=True)
class Table:
    """A table that is this client's alone, as far as it knows."""

    name: str
    is_dropped: bool = False


@dataclass
class Client:
    """One of several; its chances are its own seed's."""

    number: int
    urls: Sequence[str]
    manner: Manner
    http: httpx.AsyncClient
    until_ms: int
    attempts: list[Attempt] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Answers that no server may give, whatever happens to it."""

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._rng = random.Random(self.number)

    @property
    def _is_over(self) -> bool:
        return self._clock.mono_ms() >= self.until_ms

    async def run(self) -> None:
        while not self._is_over:
            await self._change(*self._choose())
            await self._clock.sleep_ms(self._rng.randrange(2 * PAUSE_MS))

    # What to ask for ---------------------------------------------------------------------------

    def _choose(self) -> tuple[Attempt, Table | None]:
        number = len(self.attempts)
        token = f"c{self.number}_{number}"
        dice = self._rng.random()
        living = [table for table in self.tables if not table.is_dropped]
        if dice < 0.08:
            return Attempt("schema.created", token, "POST", SCHEMAS, {"name": token}), None
        if dice < 0.25:
            name = self._rng.choice(SHARED)
            return self._about_shared(name, token), None
        if not living or (dice < 0.5 and len(living) < MINE_MAX):
            attempt = Attempt("table.created", token, "POST", PUBLIC, table_spec(token))
            return attempt, Table(token)
        table = self._rng.choice(self.tables)
        path = f"{PUBLIC}/{table.name}"
        if table.is_dropped:
            body = {"new_name": token}
            return Attempt("table.undropped", token, "POST", f"{path}/undrop", body), table
        if dice < 0.65:
            return Attempt(
                "table.renamed", token, "POST", f"{path}/rename", {"new_name": token}
            ), table
        if dice < 0.85:
            change = {"op": "set_options", "options": {"app.token": token}}
            asked = {"operations": [change]}
            return Attempt("table.altered", token, "POST", f"{path}/alter", asked), table
        return Attempt("table.dropped", "", "DELETE", path), table

    def _about_shared(self, name: str, token: str) -> Attempt:
        """A name that every client wants: made, or taken out of the others' way."""
        if self._rng.random() < 0.6:
            spec = {**table_spec(name, regions=1), "options": {"app.token": token}}
            return Attempt("table.created", token, "POST", PUBLIC, spec)
        path, body = f"{PUBLIC}/{name}/rename", {"new_name": token}
        return Attempt("table.renamed", token, "POST", path, body)

    # Asking ------------------------------------------------------------------------------------

    async def _change(self, attempt: Attempt, table: Table | None) -> None:
        attempt.key = f"key-{self.number}-{len(self.attempts)}"
        self.attempts.append(attempt)
        attempt.begun_ms = self._clock.mono_ms()
        if self.manner is Manner.FORGETS:
            await self._forget(attempt)
        else:
            await self._follow(attempt)
        attempt.told_ms = self._clock.mono_ms()
        self._remember(attempt, table)

    async def _forget(self, attempt: Attempt) -> None:
        """Sent, accepted perhaps, and never asked about again."""
        answer = await self._send(attempt, wait_s=0)
        if answer is None or answer.status_code not in NOT_DONE | {202}:
            return
        if answer.status_code == 202:
            attempt.procedure = answer.json()["id"]
        else:
            attempt.told = "fail"

    async def _follow(self, attempt: Attempt) -> None:
        while True:
            answer = await self._send(attempt, wait_s=3)
            if answer is not None and self._is_final(attempt, answer):
                return
            if answer is not None and answer.status_code == 202:
                await self._wait_for(attempt, answer.json())
                return
            if self.manner is Manner.ONCE or self._is_over:
                return
            await self._clock.sleep_ms(PAUSE_MS)

    def _is_final(self, attempt: Attempt, answer: httpx.Response) -> bool:
        status = answer.status_code
        if status in (200, 201, 204):
            attempt.told = "ok"
            version = answer.headers.get("catalog-version")
            attempt.version = int(version) if version is not None else None
            return True
        # Of a copy it says nothing about the copies before it: 503 may come after one that arrived.
        if (
            status in NOT_DONE
            and attempt.sent == 1
            and (status != 503 or self.manner is Manner.ONCE)
        ):
            attempt.told = "fail"
            return True
        if status in NOT_DONE - {503, 429}:
            # Judged anew, or the recorded end of the same procedure: either way nothing is to come.
            attempt.told = "fail" if "procedure_id" in answer.json() else "maybe"
            return True
        return False

    async def _wait_for(self, attempt: Attempt, document: Mapping[str, Any]) -> None:
        """202 is a promise: the procedure ends, and any server can say how."""
        attempt.procedure = document["id"]
        while not self._is_over:
            answer = await self._get(f"/v1/procedures/{attempt.procedure}")
            if answer is not None and answer.status_code == 200:
                found = answer.json()
                if found["state"] in FINAL:
                    attempt.told = "ok" if found["state"] == "succeeded" else "fail"
                    attempt.version = found["catalog_version"]
                    return
            await self._clock.sleep_ms(PAUSE_MS)

    async def _send(self, attempt: Attempt, wait_s: int) -> httpx.Response | None:
        attempt.sent += 1
        headers = {"idempotency-key": attempt.key, "x-request-id": attempt.key}
        if wait_s:
            headers["prefer"] = f"wait={wait_s}"
        url = self._rng.choice(list(self.urls)) + attempt.path
        try:
            answer = await self.http.request(
                attempt.method, url, json=attempt.body, headers=headers, timeout=ANSWER_S
            )
        except httpx.ConnectError:
            self.statuses["not connected"] += 1
            return None
        except httpx.TransportError:
            self.statuses["no answer"] += 1
            return None
        self.statuses[str(answer.status_code)] += 1
        if answer.status_code == 500:
            self.faults.append(f"{attempt.op} {attempt.token} at {url}: {answer.text}")
        return answer

    async def _get(self, path: str) -> httpx.Response | None:
        try:
            return await self.http.get(
                self._rng.choice(list(self.urls)) + path,
                headers={"prefer": "wait=1"},
                timeout=ANSWER_S,
            )
        except httpx.TransportError:
            return None

    def _remember(self, attempt: Attempt, table: Table | None) -> None:
        """Remembers a table whose state is certain; forgets one of which something is not known."""
        if table is None:
            return
        if attempt.told == "maybe":
            self.tables = [one for one in self.tables if one is not table]
        elif attempt.told == "ok":
            self._changed(attempt, table)

    def _changed(self, attempt: Attempt, table: Table) -> None:
        match attempt.op:
            case "table.created":
                self.tables.append(table)
            case "table.renamed":
                table.name = attempt.token
            case "table.undropped":
                table.name, table.is_dropped = attempt.token, False
            case "table.dropped":
                table.is_dropped = True


def clients_of(
    urls: Sequence[str], *, count: int, until_ms: int, http: httpx.AsyncClient
) -> list[Client]:
    """Returns clients of three manners in turn: one retries, one asks once, one forgets."""
    manners = list(Manner)
    return [
        Client(number, urls, manners[number % len(manners)], http, until_ms)
        for number in range(count)
    ]


# Judging ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Logged:
    """One entry of the catalog log."""

    version: int
    op: str
    procedure: str | None
    tokens: frozenset[str]


def logged_of(updates: Mapping[int, Mapping[str, Any]]) -> Iterator[Logged]:
    """A table that is hidden before it goes, or shown again, is altered too, and bears nobody's
    token: its options are those of before."""
    states: dict[str, str] = {}
    for version, update in sorted(updates.items()):
        for entry in update["entries"]:
            info = entry.get("info") or {}
            tokens = {info.get("name", ""), info.get("options", {}).get("app.token", "")}
            if "table_id" in info:
                before, state = states.get(info["table_id"]), info.get("state", "public")
                is_shown_or_hidden = before is not None and before != state
                tokens = set() if entry["op"] == "table.altered" and is_shown_or_hidden else tokens
                states[info["table_id"]] = state
            yield Logged(version, entry["op"], update["procedure"], frozenset(tokens))


def wrong_of(
    clients: Sequence[Client],
    updates: Mapping[int, Mapping[str, Any]],
    endings: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Every promise that was broken. *endings*: histories of procedures, by id."""
    wrong = [fault for client in clients for fault in client.faults]
    wrong += out_of_order(attempt for client in clients for attempt in client.attempts)
    wrong += [f"version {v} is missing" for v in range(1, len(updates) + 1) if v not in updates]
    logged = list(logged_of(updates))
    for attempt in (attempt for client in clients for attempt in client.attempts):
        made = _made_by(attempt, logged, endings)
        times = len(made)
        if times > 1 or (attempt.told == "ok" and times != 1) or (attempt.told == "fail" and times):
            wrong.append(f"{attempt} happened {times} times")
        # An undrop goes on to open its regions: it is told of its last version, not its first.
        by = {one.version for one in logged if made and one.procedure == made[0].procedure}
        if attempt.version is not None and made and attempt.version not in by:
            wrong.append(f"{attempt} was told of a version that is none of {sorted(by)}")
        if attempt.procedure is not None and attempt.procedure not in endings:
            wrong.append(f"{attempt} was accepted and has no end")
    ids = [
        entry["info"]["table_id"]
        for update in updates.values()
        for entry in update["entries"]
        if entry["op"] == "table.created"
    ]
    wrong += [f"table id {id} was given {n} times" for id, n in Counter(ids).items() if n > 1]
    return wrong


def out_of_order(attempts: Iterable[Attempt]) -> list[str]:
    """Changes that began after another was told `ok`, and yet have a lower version than it (G3).

    The version is the witness: it is the order of the store's revisions, so nothing is searched.
    """
    known = [
        attempt for attempt in attempts if attempt.told == "ok" and attempt.version is not None
    ]
    ended = sorted(known, key=lambda attempt: attempt.told_ms)
    wrong, newest, following = [], 0, 0
    for attempt in sorted(known, key=lambda attempt: attempt.begun_ms):
        while following < len(ended) and ended[following].told_ms < attempt.begun_ms:
            newest = max(newest, ended[following].version or 0)
            following += 1
        if (attempt.version or 0) < newest:
            wrong.append(f"{attempt} began after version {newest} was told")
    return wrong


def _made_by(
    attempt: Attempt, logged: Sequence[Logged], endings: Mapping[str, Mapping[str, Any]]
) -> list[Logged]:
    if attempt.token:
        return [one for one in logged if one.op == attempt.op and attempt.token in one.tokens]
    # A drop leaves no token in the log; the record of its procedure says whose request it was.
    mine = {
        id for id, ended in endings.items() if ended["last"]["client"]["request_id"] == attempt.key
    }
    return [one for one in logged if one.op == attempt.op and one.procedure in mine]
