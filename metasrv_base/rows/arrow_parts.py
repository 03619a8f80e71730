"""An Arrow IPC stream that is made part by part, so that no answer is held whole. Pure."""

from collections.abc import Mapping

import pyarrow as pa

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of an Arrow IPC stream; a cut one lacks them."""


class ArrowParts:
    """The bytes of an IPC stream: each part is a message of Arrow, as `pa.ipc.new_stream` writes
    it. No column is a dictionary: their messages would be missing."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._head: bytes = schema.serialize().to_pybytes()
        """The bytes that are still to be sent in front of the next part."""

    def part(self, batch: pa.RecordBatch) -> bytes:
        assert batch.schema.equals(self.schema), "batches of a stream have one schema"
        head, self._head = self._head, b""
        return b"".join((head, batch.serialize()))

    def marked(self, batch: pa.RecordBatch, metadata: Mapping[bytes, bytes]) -> bytes:
        """A part whose message bears *metadata*."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            writer.write_batch(batch, custom_metadata=dict(metadata))
        whole: bytes = sink.getvalue().to_pybytes()
        head, self._head = self._head, b""
        return head + whole[len(self.schema.serialize()) : -len(END_OF_STREAM)]

    def end(self) -> bytes:
        """Returns the end of the stream: a reader that does not get it knows that the stream was
        cut."""
        head, self._head = self._head, b""
        return head + END_OF_STREAM
