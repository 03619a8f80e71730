"""A watch that outlives its streams: whole revisions, in order, each once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from aetcd import rpc

from keys.store.etcd_calls import Caller, Metadata
from keys.store.etcd_errors import TokenRefused, Translated
from keys.store.kv import Event, Watched
from metasrv_base.errors import Conflict, Refused, Unavailable

TOKEN_MS = 5_000  # for a token, before a stream is opened
REOPEN_DELAY_MS = 100  # between the loss of a stream and the next attempt
PERMISSION = "permission denied"
NEEDS_LEADER = (("hasleader", "true"),)  # a member cut off from its leader ends the stream


@dataclass(frozen=True, slots=True)
class WatchedRange:
    """Absolute, the prefix included; `prefix` is taken off what is delivered."""

    start: bytes
    end: bytes
    prefix: bytes


@dataclass(frozen=True, slots=True)
class WatchSource:
    """Source of a watch: the stub, the user in whose name it is opened, and the watched range."""

    stub: Any
    caller: Caller
    watched: WatchedRange


class Assembler:
    """Turns what a stream carries into whole revisions. Pure.

    etcd splits a large answer into fragments, which may cut a revision in two; nothing is handed
    on before the last fragment. What was delivered already is dropped: etcd 3.4 may repeat.
    """

    def __init__(self, watched: WatchedRange, start_revision: int) -> None:
        self.next_revision = start_revision
        self._prefix_bytes = len(watched.prefix)
        self._held: list[Event] = []

    def feed(self, response: Any) -> list[Watched]:
        """Raises Conflict("history-expired") or, when etcd ended the watch, Unavailable or Refused.

        etcd says "permission denied" of a token that it does not know, too.
        """
        if response.compact_revision:
            raise Conflict(
                "history-expired", asked=self.next_revision, oldest=response.compact_revision
            )
        if response.canceled and PERMISSION in response.cancel_reason:
            raise Refused("unauthenticated", call="watch", details=response.cancel_reason)
        if response.canceled:
            raise Unavailable(call="watch", reason=response.cancel_reason)
        self._held += [self._event(event) for event in response.events]
        if response.fragment or response.created:
            return []
        if not response.events:
            return self._progress(response.header.revision)
        return self._whole_revisions()

    def _whole_revisions(self) -> list[Watched]:
        fresh = [event for event in self._held if event.mod_revision >= self.next_revision]
        self._held = []
        whole = [
            Watched(revision, tuple(events))
            for revision, events in groupby(fresh, key=lambda event: event.mod_revision)
        ]
        revisions = [watched.revision for watched in whole]
        assert revisions == sorted(set(revisions)), "etcd sent revisions out of order"
        self.next_revision = max([self.next_revision, *(number + 1 for number in revisions)])
        return whole

    def _progress(self, revision: int) -> list[Watched]:
        if revision < self.next_revision:
            return []
        self.next_revision = revision + 1
        return [Watched(revision)]

    def _event(self, event: Any) -> Event:
        deleted = event.type == event.DELETE
        key = event.kv.key[self._prefix_bytes :]
        return Event(key, None if deleted else event.kv.value, event.kv.mod_revision)


async def follow(source: WatchSource, start_revision: int) -> AsyncGenerator[Watched, None]:
    """Yields until the watch is closed. Raises Conflict `history-expired`, and Refused if a new
    token is refused too."""
    next_revision, has_new_token = start_revision, False
    while True:
        assembler = Assembler(source.watched, next_revision)
        metadata: Metadata = ()
        try:
            metadata = await source.caller.metadata(deadline_ms=TOKEN_MS)
            async with aclosing(_one_stream(source, metadata, assembler)) as stream:
                async for watched in stream:
                    next_revision, has_new_token = watched.revision + 1, False
                    yield watched
        except TokenRefused:
            source.caller.forget(metadata)
        except Unavailable as error:
            if error.facts.get("reason") == "closed":
                raise
        except Refused:
            if has_new_token or not metadata:
                raise
            source.caller.forget(metadata)
            has_new_token = True
        await asyncio.sleep(REOPEN_DELAY_MS / 1000)


async def _one_stream(
    source: WatchSource, metadata: Metadata, assembler: Assembler
) -> AsyncGenerator[Watched, None]:
    """Ends by an error only; the stream is cancelled with the generator.

    Asks for one revision more than is wanted: compacted exactly where a watch begins, etcd before
    3.4.36 has forgotten the deletions of that revision and does not say so. Below, it says.
    """
    create = rpc.WatchCreateRequest(
        key=source.watched.start,
        range_end=source.watched.end,
        start_revision=max(1, assembler.next_revision - 1),
        progress_notify=True,
        fragment=True,
    )
    with Translated("watch", writes=False):
        call = source.stub.Watch(metadata=NEEDS_LEADER + metadata)
    try:
        with Translated("watch", writes=False):
            await call.write(rpc.WatchRequest(create_request=create))
        while True:
            for watched in assembler.feed(await _next_response(call)):
                yield watched
    finally:
        call.cancel()


async def _next_response(call: Any) -> Any:
    with Translated("watch", writes=False):
        response = await call.read()
    if not isinstance(response, rpc.WatchResponse):
        raise Unavailable(call="watch", reason="stream over")
    return response
