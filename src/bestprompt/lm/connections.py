"""Requests to one server over kept connections, with the proxy and the certificates that the environment names.

urllib3 makes one attempt, follows no redirect and reads a reply up to a limit. A failure while the connection was being
made is a :class:`NotConnected`: no request has left. After any other failure nobody knows, a kept connection that the
server closed just then included.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import truststore
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection

from bestprompt.errors import LMError

# A reply is some kilobytes; one of many megabytes is a mistake, and would fill memory and record.
MOST_BYTES = 16 * 2**20
_ONE_ATTEMPT = Retry(False)
_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile("[!-~]+")


class NotConnected(Exception):
    """The connection was not made; ``__cause__`` says why."""


class TooLong(Exception):
    """The server sent more than anybody reads."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server said; names of headers in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Connections to the server at a URL. Thread-safe.

    Attributes:
        host: Of the server.
        path: Of the URL, with a slash at its end.
        where: Host and port, or what stands for the usual one; no credential.
        way: The same for people, with the proxy on the way.
        secrets: What must not be shown.

    Args:
        url: What paths are appended to; user and password in it are sent instead of the key.
        key: Is sent with each request, if given.
        timeout: Seconds to wait for an answer, or for more of it.
        connecting: Seconds to wait for a connection.
        kept: Connections that are kept open between requests, at most.

    Raises:
        LMError: The URL, or a name, proxy or certificates in the environment, cannot be used.
    """

    def __init__(self, url: str, key: str | None, timeout: float, connecting: float, kept: int) -> None:
        try:
            parts = _checked(url)
        except ValueError as error:
            raise LMError(f"base_url is {error}", retryable=False, systemic=True) from None
        host = _host(parts)
        port = f":{parts.port}" if parts.port not in (None, _PORTS[parts.scheme]) else ""
        path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~") + "/"
        self.host, self.path = host, path if parts.path else ""
        self.where = f"{host.strip('[]')}:{port[1:] or parts.scheme}"
        origin, proxy = f"{parts.scheme}://{host}{port}", _proxy(parts)
        # A proxy that passes requests on as they are has to be told where to; through a tunnel they go as without it.
        self._base = f"{origin}{path}" if proxy is not None and parts.scheme == "http" else path
        self._query = f"?{parts.query}" if parts.query else ""
        self._timeout, self._connecting = timeout, connecting
        self._headers = _headers(parts, key)
        self.way = self.where + (f" (proxy {proxy.hostname}:{proxy.port or proxy.scheme})" if proxy is not None else "")
        given = (key, parts.password, proxy and proxy.password, *(value for _, value in parse_qsl(parts.query)))
        self.secrets = [secret for each in given if each for secret in (each, unquote(each))]
        self._manager = _manager(parts.scheme, proxy, kept)
        self._pool = self._manager.connection_from_url(origin)

    def post(self, path: str, body: bytes) -> Reply:
        """Sends ``body``, which is JSON."""
        return self._request("POST", path, body, self._timeout)

    def get(self, path: str, timeout: float) -> Reply:
        """Asks for a page."""
        return self._request("GET", path, None, timeout)

    def close(self) -> None:
        """Ends connections that nobody uses."""
        self._manager.clear()

    def _request(self, method: str, path: str, body: bytes | None, timeout: float) -> Reply:
        response = self._pool.urlopen(
            method,
            f"{self._base}{path}{self._query}",
            body=body,
            headers=self._headers,
            timeout=Timeout(connect=min(self._connecting, timeout), read=timeout),
            retries=_ONE_ATTEMPT,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )
        try:
            read = response.read(MOST_BYTES + 1)
        finally:
            response.close()  # one that was read to its end has given its connection back
        if len(read) > MOST_BYTES:
            raise TooLong(f"it sent more than {MOST_BYTES:,} bytes")
        return Reply(response.status, response.headers, read)


@contextmanager
def _nothing_has_left() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise NotConnected from error


class _Connection(HTTPConnection):
    def connect(self) -> None:
        with _nothing_has_left():
            super().connect()


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        with _nothing_has_left():
            super().connect()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _manager(scheme: str, proxy: SplitResult | None, kept: int) -> PoolManager:
    context = _trusted() if "https" in (scheme, proxy and proxy.scheme) else None
    if proxy is None:
        manager = PoolManager(maxsize=kept, ssl_context=context)
    else:
        headers = {"Proxy-Authorization": _basic(proxy)} if proxy.username or proxy.password else {}
        manager = ProxyManager(
            proxy.geturl(), maxsize=kept, ssl_context=context, proxy_ssl_context=context, proxy_headers=headers
        )
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return manager


def _checked(url: str) -> SplitResult:
    """The parts of a ``url``; a ``ValueError`` says nothing of it, because it may hold a credential."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.port != 0 and _VISIBLE.fullmatch(_host(parts)) is not None
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("not a URL that begins with http:// or https:// and a host")
    return parts


def _headers(parts: SplitResult, key: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "bestprompt"}
    if parts.username or parts.password:
        headers["Authorization"] = _basic(parts)
    elif key is not None:
        headers["Authorization"] = f"Bearer {key}"
    # Where an account belongs to several, the vendor's own client reads these.
    for header, variable in (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID")):
        if named := os.environ.get(variable, "").strip():
            if not _VISIBLE.fullmatch(named):
                what = f"{variable} holds white space or characters outside ASCII; a name there has none."
                raise LMError(what, retryable=False, systemic=True)
            headers[header] = named
    return headers


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host if host.isascii() else host.encode("idna").decode()


def _proxy(parts: SplitResult) -> SplitResult | None:
    """The proxy on the way to a server, as HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY or the system have it."""
    proxies, host = getproxies(), parts.hostname or ""
    named = proxies.get(parts.scheme) or proxies.get("all")
    port = parts.port or _PORTS[parts.scheme]
    exempt = [each.strip() for each in proxies.get("no", "").split(",")]
    if not named or proxy_bypass(host) or proxy_bypass(f"{host}:{port}") or any(_covers(each, host) for each in exempt):
        return None
    try:
        return _checked(named if "://" in named else f"http://{named}")
    except ValueError:
        what = "The proxy that the environment names must be an address that begins with http:// or https://."
        raise LMError(f"{what} NO_PROXY={host} does without it.", retryable=False, systemic=True) from None


def _covers(exempt: str, host: str) -> bool:
    """Whether an entry of NO_PROXY is one that Python does not know, a network or a star among others, and fits."""
    try:
        return exempt == "*" or ipaddress.ip_address(host) in ipaddress.ip_network(exempt, strict=False)
    except ValueError:
        return False


def _trusted() -> ssl.SSLContext:
    """Certificates that a variable names, else those that the system trusts."""
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        if named := os.environ.get(variable):
            try:
                folder = os.path.isdir(named)
                return ssl.create_default_context(cafile=None if folder else named, capath=named if folder else None)
            except OSError as error:
                what = f"The certificates that {variable} names cannot be read: {named}: {error.strerror or error}"
                raise LMError(what, retryable=False, systemic=True) from None
    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
