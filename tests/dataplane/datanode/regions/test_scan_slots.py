"""Slots of scans: a reader that stops receiving loses its own, and no other's."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dataplane.datanode.regions.scan_slots import SLOTS, ReaderKind, ScanSlots
from metasrv_base.errors import Unavailable
from serving.timed_stream import TimedStream


async def test_given_a_reader_that_receives_nothing_when_sent_to_then_its_slot_is_free_again() -> (
    None
):
    slots, ended = ScanSlots(), []

    async def parts() -> AsyncGenerator[bytes]:
        try:
            with slots.slot(ReaderKind.STREAM):
                for _ in range(10):
                    yield b"x"
        finally:
            ended.append(True)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await TimedStream(parts(), "text/plain", send_s=0.01).stream_response(send)

    assert ended == [True]
    with slots.slot(ReaderKind.STREAM):
        pass


@pytest.mark.parametrize("kind", list(ReaderKind))
def test_given_one_kind_of_reader_has_all_its_slots_when_another_comes_then_it_is_served(
    kind: ReaderKind,
) -> None:
    slots = ScanSlots()
    held = [slots.slot(kind) for _ in range(SLOTS[kind])]
    for one in held:
        one.__enter__()

    with pytest.raises(Unavailable, match="too many scans"), slots.slot(kind):
        pass
    for other in set(ReaderKind) - {kind}:
        with slots.slot(other):
            pass
    held[0].__exit__(None, None, None)
    with slots.slot(kind):
        pass
