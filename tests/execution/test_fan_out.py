"""Repetitions in the order of their arguments."""

from __future__ import annotations

import importlib.util

import pytest

from bestprompt.errors import MissingExtraError
from bestprompt.execution.fan_out import fan_out


def test_here_one_after_the_other() -> None:
    assert list(fan_out(lambda n: n * n, range(5))) == [0, 1, 4, 9, 16]


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_the_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match="ray"):
        list(fan_out(abs, range(3), "auto"))
