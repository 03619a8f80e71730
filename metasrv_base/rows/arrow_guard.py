"""Checks the messages of an Arrow stream before anything in it is decoded.

A compressed buffer of a few kilobytes can ask for gigabytes; so batches come uncompressed, and
nothing but a schema and record batches is read. Arrow's messages are flatbuffers (Arrow format,
`Message.fbs`, MetadataVersion V5); of these we read two offsets and one presence.
"""

import struct

from metasrv_base.errors import Refused

PREFIX = struct.Struct("<Ii")
"""Prefix of each message: a mark, and the size of its metadata; 0: the end."""
CONTINUES = 0xFFFFFFFF
SCHEMA = 1
RECORD_BATCH = 3
_KINDS = {SCHEMA: "a schema", 2: "a dictionary", RECORD_BATCH: "a record batch", 4: "a tensor"}
_KIND_FIELD = 1
_HEADER_FIELD = 2  # Message: version, header_type, header, bodyLength
_BODY_FIELD = 3
_COMPRESSION_FIELD = 3  # RecordBatch: length, nodes, buffers, compression
_SLOTS_START = 4  # of a vtable: behind its own size and the table's


def check_messages(body: bytes) -> None:
    """Raises Refused for what is no stream of messages with their lengths before them, and for a
    message that is neither the schema, at the begin, nor an uncompressed record batch."""
    view, offset, expected = memoryview(body), 0, SCHEMA
    while offset < len(view):
        mark, size = _prefix(view, offset)
        if mark != CONTINUES or not 0 <= size <= len(view) - offset - PREFIX.size:
            raise _damaged()
        offset += PREFIX.size
        if size == 0:
            return
        metadata = view[offset : offset + size]
        check_message(metadata, expected)
        offset += size + body_bytes(metadata)
        expected = RECORD_BATCH


def check_message(metadata: bytes | memoryview, expected: int) -> None:
    """Raises Refused for a message of another kind, and for a compressed batch."""
    kind = kind_of(metadata)
    if kind != expected:
        raise Refused("invalid-request", reason=f"the Arrow stream holds {_named(kind)}")
    if expected == RECORD_BATCH and is_compressed(metadata):
        raise Refused("invalid-request", reason="the Arrow stream is compressed")


def kind_of(metadata: bytes | memoryview) -> int:
    """The type of a message's header; 0: there is none."""
    try:
        (root,) = struct.unpack_from("<I", metadata)
        slot = _field(metadata, root, _KIND_FIELD)
        return int(metadata[root + slot]) if slot else 0
    except (struct.error, IndexError) as error:
        raise _damaged() from error


def is_compressed(metadata: bytes | memoryview) -> bool:
    """Returns whether a record batch's message is compressed; True for a damaged one."""
    try:
        (root,) = struct.unpack_from("<I", metadata)
        slot = _field(metadata, root, _HEADER_FIELD)
        if not slot:
            return True
        (header,) = struct.unpack_from("<I", metadata, root + slot)
        return _field(metadata, root + slot + header, _COMPRESSION_FIELD) != 0
    except struct.error:
        return True


def body_bytes(metadata: bytes | memoryview) -> int:
    """Returns the bytes of buffers after a message's metadata. Raises Refused if damaged."""
    try:
        (root,) = struct.unpack_from("<I", metadata)
        slot = _field(metadata, root, _BODY_FIELD)
        (size,) = struct.unpack_from("<q", metadata, root + slot) if slot else (0,)
    except struct.error:
        size = -1
    if size < 0:
        raise _damaged()
    return int(size)


def _named(kind: int) -> str:
    return _KINDS.get(kind, f"a message of type {kind}")


def _prefix(view: memoryview, offset: int) -> tuple[int, int]:
    try:
        mark, size = PREFIX.unpack_from(view, offset)
    except struct.error as error:
        raise _damaged() from error
    return mark, size


def _damaged() -> Refused:
    return Refused("invalid-request", reason="the Arrow stream is damaged")


def _field(metadata: bytes | memoryview, table: int, number: int) -> int:
    """Offset of a field in the table at `table`; 0: not present."""
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    if vtable < 0:
        raise struct.error
    (size,) = struct.unpack_from("<H", metadata, vtable)
    slot = _SLOTS_START + 2 * number
    if slot + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + slot)
    return int(offset)
