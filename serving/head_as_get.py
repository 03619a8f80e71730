"""Answers HEAD as GET, without the body (RFC 9110, section 9.3.2). Pure ASGI, around the door."""

import asyncio

from metasrv_base.wire.http.asgi import App, Message, Receive, Scope, Send


class HeadAsGet:
    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        bodiless = _Bodiless(send)
        try:
            async with bodiless.cut:
                await self._app({**scope, "method": "GET"}, receive, bodiless.send)
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
