"""Keys: read with care, and removed from whatever is shown or kept, in each form in which a server may echo them."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from bestprompt.errors import LMAuthError

HIDDEN = "***"
_SHORTEST = 6  # what is shorter is no secret, and removing it everywhere would make texts unreadable


def read_key(variable: str) -> str | None:
    """The key in an environment variable, without the white space that copying adds; ``None`` if there is none.

    Raises:
        LMAuthError: It holds what no HTTP header may. The message does not show it.
    """
    key = os.environ.get(variable, "").strip()
    if re.search(r"[^!-~]", key):
        raise LMAuthError(
            f"The key in the environment variable {variable} holds white space or characters outside ASCII; "
            "a key has none. Copy it again."
        )
    return key or None


class Scrubber:
    """Removes secrets from texts: as they are, escaped, percent-encoded, in base64 and in hexadecimal.

    Args:
        secrets: What must not be shown.
    """

    def __init__(self, *secrets: str | None) -> None:
        forms = {form for secret in secrets if secret and len(secret) >= _SHORTEST for form in _forms(secret)}
        # The longest first: a form may hold another one.
        alternatives = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        self._pattern = re.compile(alternatives, re.IGNORECASE) if forms else None

    def __call__(self, text: str) -> str:
        """``text`` with three stars for each secret."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode()
    escaped = json.dumps(secret)[1:-1]
    yield from (secret, escaped, json.dumps(escaped)[1:-1], html.escape(secret))
    # What Python shows of a text, or of one that was escaped before, doubles backslashes and leaves quotes alone.
    yield from (shown.replace("\\", "\\\\") for shown in (secret, escaped))
    yield repr(secret)[1:-1]
    yield from (quote(secret, safe=""), quote_plus(secret), quote(quote(secret, safe=""), safe=""))
    yield from ("".join(f"%{byte:02X}" for byte in raw), "".join(f"\\u{byte:04x}" for byte in raw), raw.hex())
    for shift in range(3):  # inside a longer text, base64 looks different depending on where the secret begins
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        # Characters at either end that also depend on what stands beside the secret are left out.
        middle = encoded[(0, 2, 3)[shift] : len(encoded) - (0, 3, 2)[(len(raw) + shift) % 3]]
        yield from (middle, middle.replace("+", "-").replace("/", "_"))
