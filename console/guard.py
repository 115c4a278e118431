"""Who may ask: a token or a proxy's word, this server's own addresses, and what a browser may do with a page (docs/console.md)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import socket
import time
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.read import QueryError

log = logging.getLogger(__name__)

LOOPBACK = {"127.0.0.1", "localhost", "::1"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Scripts come from the server's own files alone. Plotly writes styles into the page."""

REPORT_POLICY = (
    "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; frame-ancestors 'none'"
)
"""A report brings its scripts with it: it gets no cookie and no form of the console."""

HEADERS = {
    "x-content-type-options": "nosniff", "referrer-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY",
}  # fmt: skip


@dataclass(frozen=True)
class Access:
    """Who may ask. token: opens the door, and signs. user: who asks with a token. user_header: the proxy's.

    addresses: host names, with their ports, that readers type; others are refused. deciders: who may decide; None: every reader.
    session_hours: time after which a reader signs in again. is_encrypted: the cookie is sent over TLS alone.
    """

    token: str
    user: str
    addresses: frozenset[str]
    user_header: str | None = None
    deciders: frozenset[str] | None = None
    session_hours: float = 24
    is_encrypted: bool = False

    def may_decide(self, user: str) -> bool:
        return self.deciders is None or user in self.deciders

    def signed(self, purpose: str) -> str:
        """A value that proves that this server has given it for a purpose. It ends with the session, and no two are equal."""
        stated = f"{time.time() + 3600 * self.session_hours:.0f}_{secrets.token_hex(8)}"
        return f"{stated}_{self._signature(purpose, stated)}"

    def is_signed(self, purpose: str, given: str) -> bool:
        stated, _, signature = given.rpartition("_")
        is_own = hmac.compare_digest(signature.encode(), self._signature(purpose, stated).encode())
        return is_own and int(stated.partition("_")[0]) > time.time()

    def _signature(self, purpose: str, stated: str) -> str:
        return hmac.new(self.token.encode(), f"{purpose} {stated}".encode(), hashlib.sha256).hexdigest()


def addresses_of(host: str, port: int, public: str | None) -> frozenset[str]:
    """The hosts, with ports, under which a server that listens at `host` may be asked. Raises: QueryError for a public one of no scheme."""
    names = {host, *LOOPBACK} | (set() if host in LOOPBACK else {socket.gethostname(), socket.getfqdn()})
    found = {f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names}
    if port == 80:
        found |= names
    if public is not None:
        if not (stated := re.fullmatch(r"(?i)(?:https?)://([\w.-]+(?::\d+)?|\[[\da-f:.]+\](?::\d+)?)/?", public)):
            raise QueryError(f"--address {public}: give the scheme and the host that readers type, such as https://drives.example.org")
        found.add(stated[1])
    return frozenset(name.lower() for name in found)


class Guard:
    """Lets in who may ask, and says what a browser may do with the answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = {**HEADERS, "content-security-policy": POLICY, "cache-control": "no-store"}
                message["headers"] += [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in given]
            await send(message)

        try:
            await (self._refusal(scope) or self.app)(scope, receive, guarded)
        except Exception:  # it has been answered; the log says where, without what was asked
            log.exception("%s %r", scope["method"], scope["path"])

    def _refusal(self, scope: Scope) -> PlainTextResponse | RedirectResponse | None:
        """Why a request is refused, or where it is sent; None lets it in and names its user."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.access.addresses:
            return PlainTextResponse("This server is not asked under that name: start it with --address URL.", 421)
        if scope["method"] == "POST" and headers.get("origin", "").partition("://")[2].lower() not in self.access.addresses:
            return PlainTextResponse("That form is not of this server.", 403)
        if self.access.user_header:
            peer = (scope.get("client") or ("",))[0]
            user = headers.get(self.access.user_header, "").encode("latin-1").decode("utf-8", "replace").strip()
            if peer not in LOOPBACK or not user or len(user) > 200 or not user.isprintable() or "\ufffd" in user:
                return PlainTextResponse(f"The proxy has not said who asks ({self.access.user_header}).", 403)
            scope["user"] = user
            return None
        # cookies know no ports: two consoles on one machine have two
        cookie = f"drivetail_{(scope.get('server') or ('', 0))[1]}"
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if hmac.compare_digest(asked.pop("token", "").encode(), self.access.token.encode()):
            rest, path = urlencode(asked), "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            seconds, is_encrypted = int(3600 * self.access.session_hours), self.access.is_encrypted
            answer.set_cookie(cookie, self.access.signed("cookie"), seconds, path="/", secure=is_encrypted, httponly=True, samesite="lax")
            return answer
        given = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        if not self.access.is_signed("cookie", given):
            return PlainTextResponse("Sign in: open the address that drivetail serve has printed, which ends in a token.", 401)
        scope["user"] = self.access.user
        return None
