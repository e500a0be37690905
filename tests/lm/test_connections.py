"""The way to a server: proxies, certificates, redirects, addresses, and connections that are kept and closed."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.types import Completion

KEY = "sk-very-secret-987"
VARIABLES = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE OPENAI_BASE_URL"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.split():
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@contextmanager
def listening(handle: Callable[[socket.socket], None], host: str = "127.0.0.1") -> Iterator[int]:
    """The port of a server that ``handle``s each connection in a thread of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, 0), family=family)

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handle(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def request(connection: socket.socket) -> tuple[str, dict[str, str], bytes]:
    """First line, headers and body of what a client sends; raises ``OSError`` where it sends nothing more."""
    file = connection.makefile("rb")
    first = file.readline().decode().strip()
    if not first:
        raise OSError
    lines = iter(lambda: file.readline().decode().strip(), "")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return first, headers, file.read(int(headers.get("content-length", 0)))


def answer(connection: socket.socket, chat_answer: Any, *headers: str, content: bytes | None = None) -> None:
    body = json.dumps(chat_answer("four")).encode() if content is None else content
    head = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    connection.sendall("\r\n".join([*head, "", ""]).encode() + body)


class Counted:
    """A server that keeps connections open, and counts both."""

    def __init__(self, chat_answer: Any) -> None:
        self.connections, self.requests = 0, []
        self._answer = chat_answer

    def __call__(self, connection: socket.socket) -> None:
        self.connections += 1
        while True:
            self.requests.append(request(connection))
            answer(connection, self._answer)


def test_connections_are_kept(ask: Any, chat_answer: Any) -> None:
    server = Counted(chat_answer)
    with listening(server) as port:
        model = lm.openai("m", f"http://127.0.0.1:{port}/v1", concurrency=3)
        answers = model.complete([ask("hi")] * 30)
    assert all(isinstance(each, Completion) for each in answers)
    assert len(server.requests) == 30
    assert server.connections <= 3


def test_a_kept_connection_that_the_server_has_closed_is_not_used_again(ask: Any, chat_answer: Any) -> None:
    seen, closed = [], threading.Event()

    def once(connection: socket.socket) -> None:
        seen.append(request(connection))
        answer(connection, chat_answer)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    with listening(once) as port:
        model = lm.openai("m", f"http://127.0.0.1:{port}/v1")
        for _ in range(5):
            closed.clear()
            (kept,) = model.complete([ask("hi")])
            assert isinstance(kept, Completion)
            closed.wait(5)
            time.sleep(0.01)  # the farewell is under way on loopback
    assert len(seen) == 5


def test_a_request_on_a_kept_connection_that_ends_without_an_answer_may_have_been_billed(
    ask: Any, chat_answer: Any
) -> None:
    seen = []

    def twice(connection: socket.socket) -> None:
        seen.append(request(connection))
        answer(connection, chat_answer)
        seen.append(request(connection))  # and then it hangs up

    with listening(twice) as port:
        model = lm.openai("m", f"http://127.0.0.1:{port}/v1")
        first, second = model.complete([ask("hi")]) + model.complete([ask("hi")])
    assert isinstance(first, Completion)
    assert isinstance(second, LMError)
    assert not second.unbilled
    assert second.retryable
    assert f"at 127.0.0.1:{port} was lost" in str(second)
    assert len(seen) == 2  # it was not sent again


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(serve: Any, ask: Any, chat_answer: Any, status: int) -> None:
    with serve(lambda _: (200, {}, chat_answer("four"))) as (there, elsewhere):
        target = there.replace("//", f"//user:{KEY}@") + f"/chat/completions?key={KEY}"
        with serve(lambda _: (status, {"Location": target}, b"")) as (url, seen):
            model = lm.openai("m", url)
            (error,) = model.complete([ask("hi")])
            with pytest.raises(LMError, match="points elsewhere"):
                model.ping()
    assert elsewhere == []
    assert len(seen) == 2
    assert error.unbilled
    assert error.systemic
    assert f"Error code: {status} - {there}/chat/completions. Give the right address as base_url." in str(error)
    assert KEY not in str(error)


def test_a_proxy_is_used_and_its_password_shows_nowhere(
    serve: Any, ask: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def proxy(connection: socket.socket) -> None:
        seen.append(request(connection))
        said = json.dumps({"error": {"message": "you sent p%40ss-word and p@ss-word"}}).encode()
        connection.sendall(b"HTTP/1.1 407 X\r\nContent-Length: %d\r\n\r\n" % len(said) + said)

    with listening(proxy) as port:
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss-word@127.0.0.1:{port}")
        (error,) = lm.openai("m", "http://h.invalid/v1").complete([ask("hi")])
        with serve(lambda _: (200, {}, chat_answer("four"))) as (url, _):
            for passed_by in ("127.0.0.1", "127.0.0.0/8", "*", f"127.0.0.1:{url.split(':')[2].split('/')[0]}"):
                monkeypatch.setenv("no_proxy", f"other.invalid, {passed_by}")
                assert isinstance(lm.openai("m", url).complete([ask("hi")])[0], Completion), passed_by
    ((first, headers, _),) = seen
    assert first == "POST http://h.invalid/v1/chat/completions HTTP/1.1"
    assert base64.b64decode(headers["proxy-authorization"].split()[1]) == b"me:p@ss-word"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "407" in str(error)
    assert "ss-word" not in str(error)


def test_a_proxy_that_cannot_be_reached_or_used_costs_nothing(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://h.invalid/v1", "https://h.invalid/v1"):
        monkeypatch.setenv("all_proxy", "127.0.0.1:9")
        (error,) = lm.openai("m", url, max_retries=0).complete([ask("hi")])
        assert f"Cannot reach the server of m at h.invalid:{url.split(':')[0]} (proxy 127.0.0.1:9): " in str(error)
        assert error.unbilled
        monkeypatch.setenv("all_proxy", "socks5://u:secret-word@h")
        with pytest.raises(LMError, match=r"proxy .* NO_PROXY=h\.invalid") as refused:
            lm.openai("m", url)
        assert "secret-word" not in str(refused.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    file = tmp_path_factory.mktemp("certificate") / "own.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    file.write_text(file.read_text() + Path(f"{file}.crt").read_text())
    return file


@contextmanager
def secure(certificate: Path, handle: Callable[[Any], None]) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def wrapped(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as safe:
            handle(safe)

    with listening(wrapped) as port:
        yield port


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_certificate_is_trusted_where_the_environment_names_it(
    ask: Any, chat_answer: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server = Counted(chat_answer)
    with secure(certificate, server) as port:
        url = f"https://127.0.0.1:{port}/v1"
        (error,) = lm.openai("m", url, max_retries=0).complete([ask("hi")])
        assert "certificate" in str(error).lower()
        assert f"Cannot reach the server of m at 127.0.0.1:{port}" in str(error)
        assert error.unbilled
        assert server.requests == []
        monkeypatch.setenv(variable, f"{certificate}.crt")
        assert isinstance(lm.openai("m", url).complete([ask("hi")])[0], Completion)
        assert len(server.requests) == 1
        monkeypatch.setenv(variable, str(certificate / "missing"))
        with pytest.raises(LMError, match=f"{variable} names cannot be read"):
            lm.openai("m", url)


def test_through_the_tunnel_of_a_proxy(
    ask: Any, chat_answer: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees where to, and neither key nor question; one that does not let through costs nothing."""
    server, through, allowed = Counted(chat_answer), [], [False]

    def proxy(connection: socket.socket) -> None:
        through.append(request(connection))
        if not allowed[0]:
            connection.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as onward:

            def pump(a: socket.socket, b: socket.socket) -> None:
                with suppress(OSError):
                    while part := a.recv(65536):
                        b.sendall(part)

            thread = threading.Thread(target=pump, args=(onward, connection), daemon=True)
            thread.start()
            pump(connection, onward)

    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with secure(certificate, server) as port, listening(proxy) as proxy_port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy_port}")
        model = lm.openai("m", f"https://localhost:{port}/v1", max_retries=0)
        (refused,) = model.complete([ask("hi")])
        assert refused.unbilled
        assert "403" in str(refused)
        allowed[0] = True
        assert isinstance(model.complete([ask("hi")])[0], Completion)
    assert len(server.requests) == 1
    assert [first.split()[:2] for first, *_ in through] == [["CONNECT", f"localhost:{port}"]] * 2
    assert KEY not in str(through)


def test_encryption_asked_of_a_server_that_has_none_costs_nothing(ask: Any) -> None:
    with listening(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")) as port:
        (error,) = lm.openai("m", f"https://127.0.0.1:{port}/v1", max_retries=0).complete([ask("hi")])
    assert "Cannot reach" in str(error)
    assert error.unbilled


def test_an_address_of_the_sixth_version(ask: Any, chat_answer: Any) -> None:
    server = Counted(chat_answer)
    try:
        with listening(server, "::1") as port:
            model = lm.openai("m", f"http://[::1]:{port}/v1")
            assert isinstance(model.complete([ask("hi")])[0], Completion)
    except OSError:
        pytest.skip("this machine has no such address")
    assert server.requests[0][1]["host"] == f"[::1]:{port}"


def test_what_a_url_and_the_environment_add(ask: Any, chat_answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    server = Counted(chat_answer)
    with listening(server) as port:
        lm.openai("m", f"http://me:p%40ss@127.0.0.1:{port}/v1/?api-version=2024").complete([ask("hi")])
        monkeypatch.delenv("OPENAI_API_KEY")
        lm.openai("m", f"http://127.0.0.1:{port}").complete([ask("hi")])
    (first, headers, _), (second, bare, _) = server.requests
    assert first == "POST /v1/chat/completions?api-version=2024 HTTP/1.1"
    assert base64.b64decode(headers["authorization"].split()[1]) == b"me:p@ss"
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "project-1")
    assert second == "POST /chat/completions HTTP/1.1"
    assert "authorization" not in bare
    monkeypatch.setenv("OPENAI_ORG_ID", "org\nX: y")
    with pytest.raises(LMError, match="OPENAI_ORG_ID"):
        lm.openai("m", f"http://127.0.0.1:{port}")


def test_a_reply_may_be_compressed(ask: Any, chat_answer: Any) -> None:
    packed = gzip.compress(json.dumps(chat_answer("four")).encode())

    def reply(connection: socket.socket) -> None:
        request(connection)
        answer(connection, chat_answer, "Content-Encoding: gzip", content=packed)

    with listening(reply) as port:
        (found,) = lm.openai("m", f"http://127.0.0.1:{port}/v1").complete([ask("hi")])
    assert found.text == "four"


def test_what_cannot_be_sent_costs_nothing(serve: Any, ask: Any, chat_answer: Any) -> None:
    with serve(lambda _: (200, {}, chat_answer("four"))) as (url, seen):
        for odd in (float("nan"), "\ud800", object()):
            model = lm.openai("m", url)
            model._extra["odd"] = odd
            (error,) = model.complete([ask("hi")])
            assert "cannot be sent" in str(error)
            assert error.unbilled
            assert error.systemic
    assert seen == []
    (error,) = lm.openai("m", f"http://{'a' * 64}.example/v1").complete([ask("hi")])
    assert "cannot be sent" in str(error)
    assert error.unbilled


NO_URLS = ["localhost:8000/v1", "ftp://h/v1", "http://", "http://a b/v1"]


@pytest.mark.parametrize("url", [*NO_URLS, f"http://u:{KEY}@h:99999/v1", f"http://[{KEY}/v1", f"//{KEY}"])
def test_a_url_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(LMError, match="base_url is not a URL that begins with http") as refused:
        lm.openai("m", url)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000/v1/"),
        ("http://127.0.0.1:8000/v1/", "127.0.0.1:8000/v1/"),
        ("https://H.example:443/v1", "h.example:https/v1/"),
        ("http://[::1]:8000/v1", "::1:8000/v1/"),
        ("https://bücher.example/a b/v1", "xn--bcher-kva.example:https/a%20b/v1/"),
        ("http://h.example", "h.example:http"),
        ("https://h.example/v1?api-version=2024", "h.example:https/v1/"),
        ("http://u:p%40ss@h.example:80/v1", "h.example:http/v1/"),
        (None, "api.openai.com:https/v1/"),
    ],
)
def test_a_server_is_named_in_records_as_it_was(url: str | None, where: str) -> None:
    assert lm.openai("m", url).fingerprint == f"openai:chat:m@{where}:44136fa3"
