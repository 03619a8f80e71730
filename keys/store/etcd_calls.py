"""One request to etcd and its answer, in the name of a user where etcd wants one.

etcd knows a user by a token, got for a password. Tokens end: by time, with the member that gave
them, at a change of roles. etcd refuses such a token before it looks at the request, so that call
alone may be sent again with a new one; no other is (docs/protocols.md P1).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aetcd import rpc

from keys.store.etcd_errors import TokenRefused, Translated
from metasrv_base.errors import Refused, Unavailable

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Login:
    """A user of etcd. The password is in no text made of this."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """`method` is that of a stub; `sent` what it takes; `writes` as in `Translated`."""

    name: str
    method: Any
    sent: Any
    writes: bool


class Caller:
    """Every unary call of one EtcdKv. Without a *login* no token is asked for or sent."""

    def __init__(self, channel: rpc.Channel, login: Login | None) -> None:
        self._auth: Any = rpc.AuthStub(channel)
        self._login = login
        self._token = ""

    async def ask(self, call: Outgoing, *, deadline_ms: int) -> Any:
        """The answer. *deadline_ms* covers a new token and a second sending."""
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + deadline_ms / 1000
        metadata = await self.metadata(deadline_ms=deadline_ms)
        try:
            return await _send(call, metadata, ends_s - loop.time())
        except TokenRefused:
            self.forget(metadata)
        left_ms = max(1, int((ends_s - loop.time()) * 1000))
        metadata = await self.metadata(deadline_ms=left_ms)
        return await _send(call, metadata, ends_s - loop.time())

    async def metadata(self, *, deadline_ms: int) -> Metadata:
        """Returns the metadata of a call: its token. Concurrent callers without a token each get
        one; all tokens are valid.

        Raises Unavailable if etcd gives no token: the call itself was then never sent.
        """
        if self._login is None:
            return ()
        if not self._token:
            self._token = await self._authenticate(self._login, deadline_ms / 1000)
        return (("token", self._token),)

    def forget(self, metadata: Metadata) -> None:
        """Forgets a token that etcd refused. The next call gets a new one, unless another call
        has already."""
        if metadata == (("token", self._token),):
            self._token = ""

    async def _authenticate(self, login: Login, timeout_s: float) -> str:
        sent = rpc.AuthenticateRequest(name=login.user, password=login.password)
        try:
            with Translated("authenticate", writes=False):
                answer = await self._auth.Authenticate(sent, timeout=timeout_s)
        except Refused as error:
            # Passwords are changed here and at etcd in some order: ask again, do not give up.
            raise Unavailable(user=login.user, **error.facts) from error
        return str(answer.token)


async def _send(call: Outgoing, metadata: Metadata, timeout_s: float) -> Any:
    with Translated(call.name, writes=call.writes):
        return await call.method(call.sent, timeout=max(0.001, timeout_s), metadata=metadata)
