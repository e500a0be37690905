"""What a failed HTTP request means: what went wrong, whether it may have been billed, and when to ask again.

A request may have been billed once it has left: its answer was late, cut off or lost. It was not if the connection was
never made, or if the server turned it away: with a status of 4xx or 5xx, or of 3xx, which points elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bestprompt.errors import LMAuthError, LMError, LMRefused, LMTimeout
from bestprompt.types import Usage

if TYPE_CHECKING:
    from bestprompt.lm.connections import Reply

REFUSALS = {"content_filter", "content_policy_violation"}
_LATER = (408, 409, 429)
_SHOWN = 200  # characters of an odd reply that its error shows


def excerpt(said: str, scrub: Callable[[str], str]) -> str:
    """The beginning of what a server said, on one line, without the key."""
    # Scrubbed before it is cut: half a key is a secret, too.
    return " ".join(scrub(said).split())[:_SHOWN]


def failure(error: Exception, model: str, where: str, timeout: float, scrub: Callable[[str], str]) -> LMError:
    """``error``, raised while a request was sent and its reply read, as one of ours.

    Args:
        error: What was raised.
        model: The model's name.
        where: Host and port of its server.
        timeout: Seconds that were waited for.
        scrub: Removes the key from a text.
    """
    from urllib3.exceptions import LocationValueError, ReadTimeoutError

    from bestprompt.lm.connections import NotConnected

    if isinstance(error, NotConnected):
        cause = error.__cause__ or error
        if isinstance(cause, LocationValueError | UnicodeError):  # a name that no host can have
            return cannot_be_sent(cause, model, scrub)
        return LMError(f"Cannot reach the server of {model} at {where}: {scrub(_reason(cause))}", usage=Usage())
    if isinstance(error, ReadTimeoutError):
        return LMTimeout(f"{model} did not answer within {timeout:g} s.")
    return LMError(f"The connection to the server of {model} at {where} was lost: {scrub(_reason(error))}")


def cannot_be_sent(error: BaseException, model: str, scrub: Callable[[str], str]) -> LMError:
    """No request like this can leave, because of ``error``."""
    what = f"A request to {model} cannot be sent: {scrub(str(error))}"
    return LMError(what, retryable=False, systemic=True, usage=Usage())


def rejection(reply: Reply, model: str, where: str, scrub: Callable[[str], str]) -> LMError:
    """A ``reply`` whose status says that the request was turned away; arguments as those of :func:`failure`."""
    status, (said, code) = reply.status, _said(reply.body.decode("utf-8", "replace"), scrub)
    text = f"Error code: {status}" + (f" - {said}" if said else "")
    if status < 400:
        return _elsewhere(reply, model, where, scrub)
    if status in (401, 403):
        return LMAuthError(f"The server of {model} at {where} rejected the key: {text}", usage=Usage())
    if status == 404:
        what = f"The server at {where} knows no {model!r}: {text}"
        return LMError(what, retryable=False, systemic=True, usage=Usage())
    if code in REFUSALS:
        return LMRefused(f"{model} declined to answer: {text}", usage=Usage())
    if code == "insufficient_quota":
        what = f"The account has no quota left: {text}"
        return LMError(what, retryable=False, systemic=True, usage=Usage())
    later = status in _LATER or status >= 500
    wait = retry_after(reply.headers) if later else None
    return LMError(f"{model}: {text}", retryable=later, usage=Usage(), retry_after=wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the headers of a rejection, given as a number or as a date; ``None`` if they do not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, OverflowError):
        return None


def _elsewhere(reply: Reply, model: str, where: str, scrub: Callable[[str], str]) -> LMError:
    # The key is for the server that was named, and a request that is sent twice may be billed twice.
    try:
        to = urlsplit(reply.headers.get("location", ""))
        port = f":{to.port}" if to.port else ""
        there = (f"{to.scheme}://{to.hostname}{port}" if to.hostname else "") + to.path
    except ValueError:
        there = ""
    what = f"The server of {model} at {where} points elsewhere: Error code: {reply.status}"
    what += f" - {excerpt(there, scrub)}" if there else ""
    return LMError(f"{what}. Give the right address as base_url.", retryable=False, systemic=True, usage=Usage())


def _said(body: str, scrub: Callable[[str], str]) -> tuple[str, str | None]:
    """The message in the body of a rejection, or its beginning; and the code, if there is one."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return excerpt(body, scrub), None
    found = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(found, dict):
        return (scrub(found) if isinstance(found, str) else excerpt(body, scrub)), None
    code = found.get("code")
    message = found.get("message") or found.get("detail")
    said = scrub(message) if isinstance(message, str) else excerpt(body, scrub)
    return said, None if code is None else str(code)


def _reason(error: BaseException) -> str:
    """What went wrong at the bottom: libraries wrap what the system said."""
    for inner in (error.__cause__, error.__context__, *reversed(error.args)):
        if isinstance(inner, Exception) and inner is not error:
            return _reason(inner)
    return str(error) or type(error).__name__
