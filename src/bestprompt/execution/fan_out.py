"""Many independent repetitions of one function: one after the other here, or spread over a Ray cluster."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from bestprompt.lm.cluster import connected

A = TypeVar("A")
R = TypeVar("R")

AHEAD = 4  # repetitions for each processor of the cluster that are handed to it before the first is waited for


def fan_out(
    function: Callable[[A], R], arguments: Iterable[A], address: str | None = None, cpus: float = 1.0
) -> Iterator[R]:
    """What ``function`` returns for each of the ``arguments``, in their order.

    Args:
        function: Depends on its argument alone, randomness included, so that it may be repeated elsewhere when a
            machine is lost. It may be local to a script: it is sent, and modules that it uses are looked for where
            they are on this machine.
        arguments: One for each repetition; drawn as there is room for them.
        address: Of a Ray cluster; in this process, one after the other, if left out.
        cpus: That each repetition needs.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: There is no cluster at that address.
    """
    if address is None:
        yield from map(function, arguments)
        return
    ray = connected(address)
    sent = ray.put(ray.cloudpickle.dumps(function))
    repetition = ray.remote(_repetition).options(num_cpus=cpus, max_retries=5)
    left = (repetition.remote(sent, sys.path, each) for each in arguments)
    room = max(int(AHEAD * ray.cluster_resources().get("CPU", 1.0) / cpus), 1)
    under_way = list(islice(left, room))
    while under_way:
        yield ray.get(under_way.pop(0))
        under_way += islice(left, 1)


def _repetition(sent: bytes, path: list[str], argument: Any) -> Any:
    sys.path += [place for place in path if place not in sys.path]
    return _received(sent)(argument)


@lru_cache(1)
def _received(sent: bytes) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = pickle.loads(sent)
    return function
