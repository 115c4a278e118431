"""Who may ask: a token or a proxy's word, this server's own addresses, and what a browser may do with a page (docs/console.md)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Who may ask. token: opens the door; empty where a proxy signs in. user: who decides, of a token. user_header: the proxy's.

    addresses: host names, with their ports, that readers type; others are refused.
    """

    token: str
    user: str
    addresses: frozenset[str]
    user_header: str | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def form_token(self, user: str) -> str:
        """The token of the forms of one user: a proof that this server has written them."""
        return hmac.new(self.secret, user.encode(), hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        """Value of the cookie: not the token itself."""
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()


def addresses_of(host: str, port: int, public: str | None) -> frozenset[str]:
    """The hosts, with ports, under which a server that listens at `host` may be asked."""
    names = {host, *LOOPBACK} | (set() if host in LOOPBACK else {socket.gethostname(), socket.getfqdn()})
    found = {f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names}
    if port == 80:
        found |= names
    if public:
        found.add(urlsplit(public).netloc)
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
        if scope["method"] == "POST" and urlsplit(headers.get("origin", "")).netloc.lower() not in self.access.addresses:
            return PlainTextResponse("That form is not of this server.", 403)
        if self.access.user_header:
            peer = (scope.get("client") or ("",))[0]
            user = headers.get(self.access.user_header, "").strip()
            if peer not in LOOPBACK or not user or len(user) > 200 or not user.isprintable():
                return PlainTextResponse(f"The proxy has not said who asks ({self.access.user_header}).", 403)
            scope["user"] = user
            return None
        # cookies know no ports: two consoles on one machine have two
        cookie = f"drivetail_{(scope.get('server') or ('', 0))[1]}"
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if hmac.compare_digest(asked.pop("token", "").encode(), self.access.token.encode()):
            rest, path = urlencode(asked), "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(cookie, self.access.cookie, httponly=True, samesite="lax", path="/")
            return answer
        given = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        if not hmac.compare_digest(given.encode(), self.access.cookie.encode()):
            return PlainTextResponse("Open the address that drivetail serve has printed: it ends in a token.", 401)
        scope["user"] = self.access.user
        return None
