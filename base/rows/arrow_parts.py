"""An Arrow IPC stream that is written part by part, so that no answer is held whole. Pure."""

import io

import pyarrow as pa


class ArrowParts:
    """An IPC stream whose bytes are taken out after each part, so that none is kept."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def part(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._take()

    def end(self) -> bytes:
        """Without these bytes a reader knows that the stream was cut."""
        self._writer.close()
        return self._take()

    def _take(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data
