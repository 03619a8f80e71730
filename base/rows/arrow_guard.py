"""What an Arrow stream may be made of, judged before anything in it is decoded.

A compressed buffer of a few kilobytes can ask for gigabytes; so batches come uncompressed, and
nothing but a schema and record batches is read. Arrow's messages are flatbuffers (Arrow format,
`Message.fbs`, MetadataVersion V5); of these we read two offsets and one presence.
"""

import struct

import pyarrow as pa

from base.errors import Refused

_HEADER_FIELD = 2  # Message: version, header_type, header, bodyLength
_BODY_FIELD = 3
_COMPRESSION_FIELD = 3  # RecordBatch: length, nodes, buffers, compression
_SLOTS_START = 4  # of a vtable: behind its own size and the table's


def check_messages(body: bytes) -> None:
    """Raises Refused for a compressed batch or a dictionary; pyarrow's errors for no stream."""
    for number, message in enumerate(pa.ipc.MessageReader.open_stream(pa.py_buffer(body))):
        wanted = "schema" if number == 0 else "record batch"
        if message.type != wanted:
            raise Refused("invalid-request", reason=f"the Arrow stream holds a {message.type}")
        if number and is_compressed(message.metadata.to_pybytes()):
            raise Refused("invalid-request", reason="the Arrow stream is compressed")


def is_compressed(metadata: bytes) -> bool:
    """Of a record batch's message. A damaged one is taken for compressed."""
    try:
        (root,) = struct.unpack_from("<I", metadata)
        slot = _field(metadata, root, _HEADER_FIELD)
        if not slot:
            return True
        (header,) = struct.unpack_from("<I", metadata, root + slot)
        return _field(metadata, root + slot + header, _COMPRESSION_FIELD) != 0
    except struct.error:
        return True


def body_bytes(metadata: bytes) -> int:
    """How many bytes of buffers follow a message's metadata. Raises Refused for none that can."""
    try:
        (root,) = struct.unpack_from("<I", metadata)
        slot = _field(metadata, root, _BODY_FIELD)
        (size,) = struct.unpack_from("<q", metadata, root + slot) if slot else (0,)
    except struct.error:
        size = -1
    if size < 0:
        raise Refused("invalid-request", reason="the Arrow stream is damaged")
    return int(size)


def _field(metadata: bytes, table: int, number: int) -> int:
    """Offset of a field in the table at `table`; 0: not present."""
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    if vtable < 0:
        raise struct.error
    (size,) = struct.unpack_from("<H", metadata, vtable)
    place = _SLOTS_START + 2 * number
    if place + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + place)
    return int(offset)
