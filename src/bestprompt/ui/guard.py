"""Who may use the page: only those who can reach this machine's loopback, or know the token.

Three things that a web page elsewhere could try, and what refuses each:

- a name that its owner points at 127.0.0.1 (DNS rebinding): the Host header must be an address, not a stranger's name;
- a form or script on another site that posts to here (CSRF): what changes anything must come from this origin, and
  carry a token that only our own pages hold;
- markup in a prompt or an answer: it is escaped, and the policy allows no inline script in case it were not.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "bestprompt-token"
CSRF_HEADER = "x-bestprompt-csrf"
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware that refuses requests from elsewhere.

    Args:
        app: What is guarded.
        host: The address that is listened at.
        token: What users must know; ``None`` on loopback.
        names: Host names besides addresses, e.g. that of the machine in its network.
        csrf: What our own pages send along with every change.
    """

    def __init__(
        self, app: ASGIApp, *, host: str, token: str | None = None, names: Iterable[str] = (), csrf: str | None = None
    ) -> None:
        self._app, self._host, self._token, self._names = app, host, token, frozenset(names)
        self.csrf = csrf or secrets.token_urlsafe(24)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refusal(scope, headers)
        if refused is not None:
            await refused(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                added["Content-Security-Policy"] = POLICY
                added["X-Content-Type-Options"] = "nosniff"
                added["Referrer-Policy"] = "no-referrer"
                added.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if not self.knows_host(headers.get("host", "")):
            return PlainTextResponse("This address is not one of this page's. Use the one it was started with.", 421)
        if self._token is not None and not self._authorised(headers):
            return self._login(scope)
        if scope["method"] not in SAFE and not self._own(scope, headers):
            return PlainTextResponse("This did not come from our own page. Load the page again and repeat it.", 403)
        return None

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this server: by address, or by a name that it was told."""
        host = urlsplit(f"//{header}").hostname or ""
        if is_loopback(self._host):
            return is_loopback(host)
        if host in self._names or host == self._host.lower():
            return True
        try:
            ipaddress.ip_address(host)  # what a stranger could point at us is a name, never an address
        except ValueError:
            return False
        return True

    def _own(self, scope: Scope, headers: Headers) -> bool:
        origin = f"{scope['scheme']}://{headers.get('host', '')}"
        same = hmac.compare_digest(headers.get("origin", "").encode(), origin.encode())
        return same and hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), self.csrf.encode())

    def _authorised(self, headers: Headers) -> bool:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        return found is not None and self._is_token(found.value)

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _login(self, scope: Scope) -> ASGIApp:
        """The token in the address becomes a cookie, and leaves the address."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self._is_token(given):
            return PlainTextResponse("This page needs its token: open the address that `bestprompt ui` printed.", 401)
        welcome = RedirectResponse("/", 303)
        welcome.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        return welcome
