"""Forty ways in which a server fails: what it sends instead of an answer, and whether it may send a bill for it.

A fault is a function of the right answer (the bytes of its JSON) to what goes over the wire. Rejections cost
nothing; for all others the request was received, so it may have been worked on and billed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wire:
    """What is sent: bytes as they are, then silence for so many seconds, then a farewell or a reset."""

    data: bytes
    silence: float = 0.0
    reset: bool = False
    keep: bool = False


def response(body: bytes, status: int = 200, headers: str = "", length: int | None = None) -> bytes:
    """A whole HTTP response."""
    size = len(body) if length is None else length
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {size}\r\n\r\n".encode()
        + body
    )


def _rejection(
    status: int, headers: str = "Retry-After: 0.01\r\n", body: bytes = b'{"error": {"message": "no"}}'
) -> Any:
    return lambda right: Wire(response(body, status, headers), keep=True)


def _instead(body: Any) -> Callable[[bytes], Wire]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda right: Wire(response(data), keep=True)


def _changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], Wire]:
    return lambda right: Wire(response(json.dumps(change(json.loads(right))).encode()), keep=True)


def _message(**changes: Any) -> Callable[[bytes], Wire]:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"].update(changes)
        return answer

    return _changed(change)


REJECTIONS: dict[str, Callable[[bytes], Wire]] = {
    "408": _rejection(408),
    "409": _rejection(409),
    "429": _rejection(429),
    "429 in milliseconds": _rejection(429, "retry-after-ms: 5\r\n"),
    "429 with a date": _rejection(429, "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n"),
    "500": _rejection(500),
    "502 in HTML": _rejection(502, body=b"<html>Bad gateway</html>"),
    "503": _rejection(503),
    "504 without a body": _rejection(504, body=b""),
    "529": _rejection(529),
}
BILLED: dict[str, Callable[[bytes], Wire]] = {
    "silence": lambda right: Wire(b"", silence=3.0),
    "silence after the headers": lambda right: Wire(response(right)[: -len(right)], silence=3.0),
    "reset": lambda right: Wire(b"", reset=True),
    "farewell": lambda right: Wire(b""),
    "reset in the body": lambda right: Wire(response(right)[:-20], reset=True),
    "cut off": lambda right: Wire(response(right)[:-20]),
    "cut off in the headers": lambda right: Wire(b"HTTP/1.1 200 OK\r\nContent-Ty"),
    "too short": lambda right: Wire(response(right, length=len(right) + 50)),
    "too long": lambda right: Wire(response(right, length=len(right) - 20)),
    "no HTTP": lambda right: Wire(b"\x16\x03\x01 hello\r\n\r\n"),
    "chunks that are none": lambda right: Wire(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + right),
    "no gzip": lambda right: Wire(response(right, headers="Content-Encoding: gzip\r\n")),
    "204": lambda right: Wire(b"HTTP/1.1 204 No Content\r\n\r\n", keep=True),
    "empty": _instead(b""),
    "garbage": _instead(b'{"choices": [{"mess'),
    "binary": _instead(b"\xff\xfe\x00\x01"),
    "HTML": _instead(b"<html><title>Sign in</title></html>"),
    "an error": _instead({"error": {"message": "overloaded"}}),
    "a list": _instead([1, 2]),
    "null": _instead(None),
    "too deep": _instead(b"[" * 50_000),
    "a long number": _instead(b'{"usage": ' + b"9" * 5000 + b"}"),
    "no choices": _changed(lambda answer: {**answer, "choices": None}),
    "a choice of text": _changed(lambda answer: {**answer, "choices": ["four"]}),
    "a null message": _changed(lambda answer: {**answer, "choices": [{"index": 0, "message": None}]}),
    "a number for content": _message(content=4),
    "parts that are none": _message(content=[{"type": "image"}, 4]),
    "half a character": _message(content="\ud800"),
    "text for usage": _changed(lambda answer: {**answer, "usage": "seven"}),
    "a huge usage": _changed(lambda answer: {**answer, "usage": {"prompt_tokens": 10**30, "completion_tokens": 1}}),
}
FAULTS = {**REJECTIONS, **BILLED}
