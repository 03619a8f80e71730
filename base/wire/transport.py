"""The transport under our HTTP clients: whom it connects to, and how it fails."""

from typing import Any

import httpx

from base.wire.addresses import leads_to_us

CONNECTED = "connection.connect_tcp.complete"


class Transport(httpx.AsyncHTTPTransport):
    """Raises only what httpx says it raises. A name is judged by where it has led, before anything
    is sent."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """uvloop takes the socket away from a connection that is reset at once, and anyio then asks
        None for its peer. Nothing may have been sent, but that is not known here: a ReadError."""

        async def traced(event: str, facts: dict[str, Any]) -> None:
            if event == CONNECTED:
                await _must_be_ours(facts["return_value"], request)

        request.extensions = {**request.extensions, "trace": traced}
        try:
            return await super().handle_async_request(request)
        except AttributeError as error:
            raise httpx.ReadError("reset as it was made", request=request) from error


async def _must_be_ours(stream: Any, request: httpx.Request) -> None:
    if not leads_to_us(stream.get_extra_info("server_addr")):
        await stream.aclose()
        raise httpx.ConnectError("no program of ours can be at that address", request=request)
