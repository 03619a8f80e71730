"""Inserts, changes and deletes rows through one frontend, and knows what may be there.

One writer owns its ids and does one thing at a time. What it was told of a row is certain, or the
row is left alone from then on: a frozen frontend may still send what nobody waits for any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

from metasrv_base.clock import SystemClock

BATCH = 8
PAUSE_MS = 50
REFUSED_MS = 100
"""A pause after what was not done: its frontend is gone, or is not ready yet."""
ANSWER_S = 5.0
NOT_DONE = (409, 503)
"""Unless one of several regions says otherwise."""
# What the writer of these ids must never be told of them.
WRONG_CODES = frozenset({"already-exists", "row-missing", "index-not-unique"})


class Told(Enum):
    DONE = "ok"
    NOT_DONE = "fail"
    MAYBE = "maybe"


@dataclass(slots=True)
class Row:
    """The values that a read of one id may return. None: no row."""

    words: set[str | None]
    asked_ms: int
    """When its insert was sent."""
    told_ms: int | None = None
    """When that was acknowledged."""

    @property
    def is_certain(self) -> bool:
        return len(self.words) == 1


@dataclass
class RowWriter:
    """`url`: of the table, at a frontend. `first` keeps the ids of several writers apart."""

    url: str
    first: int
    http: httpx.AsyncClient
    rows: dict[int, Row] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Answers that nobody may give."""
    taken_ms: list[int] = field(default_factory=list)
    """By each statement that was acknowledged."""
    is_over: bool = False

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._statements = 0
        self._living: list[int] = []
        """Ids of rows that are certainly there, the oldest first."""

    async def run(self) -> None:
        while not self.is_over:
            await self._insert()
            if len(self._living) > 2 * BATCH:
                await self._update(self._living.pop(0))
                await self._delete(self._living.pop(0))
            await self._clock.sleep_ms(PAUSE_MS)

    async def _insert(self) -> None:
        ids = range(self.first + len(self.rows), self.first + len(self.rows) + BATCH)
        now_ms = self._clock.mono_ms()
        for id in ids:
            self.rows[id] = Row({None}, now_ms)
        told = await self._asked("insert", {id: f"new {id}" for id in ids})
        if told is Told.DONE:
            self._living += ids
            now_ms = self._clock.mono_ms()
            for id in ids:
                self.rows[id].told_ms = now_ms

    async def _update(self, id: int) -> None:
        if await self._asked("update", {id: f"changed {id}"}) is Told.NOT_DONE:
            self._living.append(id)

    async def _delete(self, id: int) -> None:
        if await self._asked("delete", {id: None}) is Told.NOT_DONE:
            self._living.append(id)

    async def _asked(self, op: str, words: Mapping[int, str | None]) -> Told:
        before = {id: set(self.rows[id].words) for id in words}
        for id, word in words.items():
            self.rows[id].words.add(word)
        told = await self._send(op, words)
        if told is not Told.DONE:
            await self._clock.sleep_ms(REFUSED_MS)
        self.told[f"{op} {told.value}"] += 1
        for id, word in words.items():
            if told is Told.DONE:
                self.rows[id].words = {word}
            elif told is Told.NOT_DONE:
                self.rows[id].words = before[id]
        return told

    async def _send(self, op: str, words: Mapping[int, str | None]) -> Told:
        self._statements += 1
        rows = [{"id": id} if op == "delete" else {"id": id, "word": words[id]} for id in words]
        headers = {"idempotency-key": f"{self.first}-{self._statements}"}
        began_ms = self._clock.mono_ms()
        try:
            answer = await self.http.post(
                f"{self.url}/rows",
                json={"op": op, "rows": rows},
                headers=headers,
                timeout=ANSWER_S,
            )
        except httpx.ConnectError:
            return Told.NOT_DONE
        except httpx.TransportError:
            return Told.MAYBE
        if answer.status_code == httpx.codes.OK:
            self.taken_ms.append(self._clock.mono_ms() - began_ms)
            return Told.DONE
        problem = answer.json()
        self.codes[problem["code"]] += 1
        if problem["code"] in WRONG_CODES or answer.status_code == 500:
            self.faults.append(f"{op} {sorted(words)}: {answer.text}")
        regions = problem.get("facts", {}).get("regions", [])
        is_done = any(region["outcome"] != "not-applied" for region in regions)
        return Told.NOT_DONE if answer.status_code in NOT_DONE and not is_done else Told.MAYBE

    def count(self, op: str) -> int:
        """Statements that were acknowledged."""
        return self.told[f"{op} {Told.DONE.value}"]

    def __str__(self) -> str:
        return f"{dict(self.told)} {dict(self.codes)}"


def wrong_of_rows(rows: Iterable[Mapping[str, Any]], writers: Iterable[RowWriter]) -> list[str]:
    """Returns the rows of a full scan that contradict the answers to the writers."""
    known = {id: row for writer in writers for id, row in writer.rows.items()}
    seen: dict[int, str] = {}
    wrong = []
    for row in rows:
        id = row["id"]
        if id in seen:
            wrong.append(f"row {id} is there twice")
        seen[id] = row["word"]
    wrong += [f"row {id} was never sent" for id in seen if id not in known]
    wrong += [
        f"row {id} is {seen.get(id)!r}, not one of {row.words}"
        for id, row in known.items()
        if seen.get(id) not in row.words
    ]
    return wrong
