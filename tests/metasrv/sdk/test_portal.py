"""Iterations through the portal that nobody reads to their end."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from concurrent.futures import CancelledError
from threading import Thread

import pytest

from metasrv.sdk.portal import Portal
from metasrv_base.errors import NotFound


async def pages(ended: list[str]) -> AsyncGenerator[int, None]:
    try:
        for number in range(3):
            yield number
    finally:
        ended.append("pages")


async def rows(ended: list[str]) -> AsyncGenerator[int, None]:
    """As a scan reads the pages of its regions."""
    async for page in pages(ended):
        yield page


def test_given_an_iteration_that_was_left_when_the_portal_closes_then_it_has_ended() -> None:
    portal, ended = Portal(), list[str]()

    for _ in portal.each(rows(ended)):
        break
    portal.close()
    gc.collect()

    assert ended == ["pages"]


def test_given_an_iteration_that_is_kept_when_the_portal_has_closed_then_its_end_is_quiet() -> None:
    portal, ended = Portal(), list[str]()
    kept = portal.each(rows(ended))
    first = next(kept)
    portal.close()

    with pytest.raises(RuntimeError, match="the client is closed"):
        next(kept)
    del kept
    gc.collect()

    assert (first, ended) == (0, ["pages"])


async def for_ever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("call")


def test_given_a_call_that_was_left_when_the_portal_closes_then_it_hears_of_it() -> None:
    """As Ctrl-C leaves one."""
    portal, ended = Portal(), list[str]()
    asyncio.run_coroutine_threadsafe(for_ever(ended), portal._loop)

    portal.close()
    gc.collect()

    assert ended == ["call"]


async def broken() -> AsyncGenerator[int, None]:
    raise NotFound(what="index", name="nope")
    yield 0


def test_given_an_iteration_that_cannot_begin_when_asked_for_then_the_call_fails() -> None:
    portal = Portal()

    with pytest.raises(NotFound, match="nope"):
        portal.each(broken())

    portal.close()


def test_given_calls_of_another_thread_when_the_portal_closes_then_each_is_answered() -> None:
    """Whichever of them come before the close, while it goes on, and after it."""
    for _ in range(50):
        portal, ends = Portal(), list[str]()
        thread = Thread(target=call_on, args=(portal, ends), daemon=True)
        thread.start()
        portal.close()
        thread.join(timeout=120)

        assert ends == ["the client is closed"]


def call_on(portal: Portal, ends: list[str]) -> None:
    """Calls until the portal takes no more."""
    while not ends:
        try:
            portal.call(asyncio.sleep(0))
        except CancelledError:
            continue
        except RuntimeError as error:
            ends.append(str(error))
