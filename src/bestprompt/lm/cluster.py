"""The way to a Ray cluster, which is loaded only where one is asked for."""

from __future__ import annotations

from typing import Any

from bestprompt.errors import ConfigError, MissingExtraError


def connected(address: str) -> Any:
    """The ``ray`` package, connected to the cluster at ``address``: ``"auto"``, ``"HOST:PORT"``, or ``"local"``.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: There is no cluster at that address.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("A run across machines", "ray") from None
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            said = str(error).splitlines()[0]
            hint = (
                "Start one with: ray start --head, and join it from other machines with: ray start --address HOST:6379"
            )
            raise ConfigError(f"There is no Ray cluster at {address!r} ({said}). {hint}") from None
    return ray
