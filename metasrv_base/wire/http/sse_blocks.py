"""Server-sent events as they arrive (HTML, 9.2.6): bytes in, blocks out. Pure."""

from dataclasses import dataclass

BLOCK_BYTES_MAX = 64 << 20
"""Bytes of one block. The largest that a server of ours sends are the events of one version, whose
log entry etcd bounds to 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class SseBlock:
    """The fields of one block that a server of ours sends."""

    event: str
    """Empty: the block has no event, and tells its id alone."""
    data: str
    id: str | None


class SseBlocks:
    """The blocks of one stream. What is behind the last whole one waits for the rest."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, part: bytes) -> list[SseBlock]:
        """The blocks that *part* completes; comments are none. Raises ValueError for bytes that are
        no text, or a block that is too long."""
        looked = max(0, len(self._rest) - 1)
        self._rest += part
        blocks: list[SseBlock] = []
        start = 0
        while (end := self._rest.find(b"\n\n", max(start, looked))) >= 0:
            block = _block(self._rest[start:end].decode())
            if block is not None:
                blocks.append(block)
            start = end + 2
        del self._rest[:start]
        if len(self._rest) > BLOCK_BYTES_MAX:
            raise ValueError("a block of more than 64 MiB")
        return blocks


def _block(text: str) -> SseBlock | None:
    """Parses a block; returns None if it holds comments alone."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
    if not fields.keys() & {"event", "data", "id"}:
        return None
    event = fields.get("event", "message") if "data" in fields else ""
    return SseBlock(event, fields.get("data", ""), fields.get("id"))
