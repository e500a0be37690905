"""Many independent repetitions of one function: one after the other here, or spread over a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from bestprompt.lm.cluster import connected

A = TypeVar("A")
R = TypeVar("R")

AHEAD = 1000  # repetitions handed to the cluster before the first is waited for


def fan_out(
    function: Callable[[A], R], arguments: Iterable[A], address: str | None = None, cpus: float = 1.0
) -> Iterator[R]:
    """What ``function`` returns for each of the ``arguments``, in their order.

    Args:
        function: Depends on its argument alone, randomness included, so that it may be repeated elsewhere when a
            machine is lost.
        arguments: One for each repetition.
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
    shared = ray.put(function)
    repetition = ray.remote(_repetition).options(num_cpus=cpus, max_retries=5)
    left = iter(arguments)
    under_way = [repetition.remote(shared, each) for each in islice(left, AHEAD)]
    while under_way:
        yield ray.get(under_way.pop(0))
        under_way += [repetition.remote(shared, each) for each in islice(left, 1)]


def _repetition(function: Callable[[A], R], argument: A) -> R:
    return function(argument)
