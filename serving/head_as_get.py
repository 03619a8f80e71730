"""Answers HEAD as GET, without the body (RFC 9110, section 9.3.2). Pure ASGI."""

import asyncio

from metasrv_base.wire.http.asgi import App, Message, Receive, Scope, Send


async def head_as_get(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """The head of what *app* answers to GET."""
    bodiless = _Bodiless(send)
    try:
        async with bodiless.cut:
            await app({**scope, "method": "GET"}, receive, bodiless.send)
    except TimeoutError:
        if not bodiless.cut.expired():
            raise


class _Bodiless:
    """Sends the head of an answer and an empty body. A stream is cancelled at its first part."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.cut = asyncio.timeout(None)
        """Entered by the task that answers."""

    async def send(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            await self._send(message)
        elif message.get("more_body"):
            await self._send({"type": "http.response.body", "body": b""})
            self.cut.reschedule(asyncio.get_running_loop().time())
            await asyncio.Event().wait()  # until that cancels us
        else:
            await self._send({"type": "http.response.body", "body": b""})
