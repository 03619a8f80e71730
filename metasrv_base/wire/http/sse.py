"""Server-sent events as bytes (HTML, 9.2): a stream that ends in order, and can be resumed.

`goaway` says: this server goes, ask again with `Last-Event-ID`. `reset` says: what you saw last is
not known any more, here is how it stands. `end` is the last event there will ever be.
"""

MEDIA_TYPE = "text/event-stream"
RETRY_MS = 500  # until the client asks again: an election is shorter than its second attempt
BEAT = b":\n\n"
"""A comment: the stream lives."""
GOAWAY = b"retry: %d\nevent: goaway\ndata: {}\n\n" % RETRY_MS
RESET = b"event: reset\ndata: {}\n\n"
BOUNDARY = b"\n\n"


def event(name: str, data: str, event_id: str) -> bytes:
    """Returns one event as bytes. *data* is JSON on one line."""
    assert "\n" not in data + name + event_id, "a line break would end the field"
    return f"id: {event_id}\nevent: {name}\ndata: {data}\n\n".encode()
