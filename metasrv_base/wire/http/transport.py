"""The transport of what is passed on: a connection that dies at its birth is a failure of the
transport like any other."""

import httpx


class Transport(httpx.AsyncHTTPTransport):
    """Raises only what httpx says it raises.

    uvloop takes the socket away from a connection that is reset at once, and anyio then asks None
    for its peer. Nothing may have been sent, but that is not known here: a ReadError.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except AttributeError as error:
            raise httpx.ReadError("reset as it was made", request=request) from error
