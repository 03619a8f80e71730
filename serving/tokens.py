"""Who asks: a bearer token before anything else, where the program was given tokens. Pure ASGI."""

from base.errors import Refused
from base.token import Tokens
from base.wire.asgi import Answering, App, Receive, Scope, Send, given_id, new_id

OPEN = frozenset({"/livez", "/readyz"})
"""For probes that cannot hold a secret; they say nothing but yes or no."""
_CHALLENGE = (b"www-authenticate", b'Bearer realm="metasrv"')


class TokenDoor:
    """`scope["state"]["principal"]` is the name of who holds the token."""

    def __init__(self, app: App, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        holder = self._tokens.holder(bearer(scope))
        if holder is None:
            answering = Answering(send, given_id(scope) or new_id())
            await answering.refuse(Refused("unauthenticated"), scope["path"], [_CHALLENGE])
            return
        scope.setdefault("state", {})["principal"] = holder
        await self._app(scope, receive, send)


def guarded(app: App, tokens: Tokens | None) -> App:
    """None: the program listens on loopback and asks nobody."""
    return app if tokens is None else TokenDoor(app, tokens)


def bearer(scope: Scope) -> str:
    """The token of the one Authorization header; empty: none, or several."""
    given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
