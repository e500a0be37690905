"""Language models on other machines: a Ray actor holds each, and answers for it in this process.

The driver decides, reserves, records and retries; an actor only asks its model, once, and Ray repeats nothing. When an
actor, its machine or the way to it is lost in mid-call, nobody knows whether the request was billed: it comes back as
``WorkerLost`` and is charged at its worst case, unless the model is part of the actor: then nobody sends a bill.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bestprompt import __version__
from bestprompt.errors import ConfigError, LMError
from bestprompt.lm.abilities import in_process, weigher
from bestprompt.lm.abilities import ping as ping_model
from bestprompt.lm.attempts import GRACE
from bestprompt.lm.back_ends import open_model
from bestprompt.lm.bounds import most_prompt_tokens
from bestprompt.lm.cluster import connected
from bestprompt.lm.fleet import Fleet, WorkerLost
from bestprompt.lm.limits import Rates
from bestprompt.lm.patience import Patience
from bestprompt.lm.settings import ModelSettings, RaySettings
from bestprompt.types import Completion, FloatArray, LanguageModel, Request, Usage

Opener = Callable[[], LanguageModel]

_READY = 300.0  # seconds in which the first worker must have opened its model
_LOOK = 0.5  # seconds between looks at whether the run was stopped
_ALIVE = 5.0  # seconds between looks at whether a worker that has not answered is still there, and for its answer
_MISSED = 3  # looks without an answer after which it is lost


@dataclass(frozen=True, slots=True)
class Description:
    """What a worker says of its model."""

    version: str
    node: str
    name: str
    fingerprint: str
    batch_size: int
    concurrency: int
    in_process: bool
    weighs_texts: bool


class Host:
    """What an actor is made of: opens a model, and asks it."""

    def __init__(self, opener: Opener, places: int) -> None:
        self._lm, self._places = opener(), places

    def describe(self) -> Description:
        """The model, as the driver has to know it."""
        import ray

        lm, node = self._lm, ray.util.get_node_ip_address()
        sizes = lm.batch_size, min(lm.concurrency, self._places)
        return Description(__version__, node, lm.name, lm.fingerprint, *sizes, in_process(lm), weigher(lm) is not None)

    def look(self) -> None:
        """Returns if the model can be reached from here."""
        ping_model(self._lm)

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """The model's answers."""
        return self._lm.complete(requests)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None) -> FloatArray:
        """As the model says."""
        found = weigher(self._lm)
        assert found is not None, "asked only where the model can"
        return found.mean_logprob(texts, contexts)


class RemoteModel:
    """A model that an actor holds.

    Args:
        ray: The package, connected.
        actor: Holds the model.
        described: What it says of itself.
        patience: Says whether the run is stopped.
    """

    def __init__(self, ray: Any, actor: Any, described: Description, patience: Patience) -> None:
        self._ray, self._actor, self._node, self._patience = ray, actor, described.node, patience
        self.name, self.fingerprint = described.name, described.fingerprint
        self.batch_size, self.concurrency = described.batch_size, described.concurrency
        self.in_process, self.weighs_texts = described.in_process, described.weighs_texts
        self._mutex = threading.Lock()
        self._looked, self._missed = time.monotonic(), 0

    def max_prompt_tokens(self, request: Request) -> int:
        """An upper bound."""
        return most_prompt_tokens(request)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        """As the model says."""
        found: FloatArray = self._ray.get(self._actor.mean_logprob.remote(list(texts), contexts))
        return found

    def ping(self) -> None:
        """Returns if the actor is there and reaches its model.

        Raises:
            LMError: It is not, or does not.
        """
        try:
            self._ray.get(self._actor.look.remote(), timeout=_ALIVE)
        except self._ray.exceptions.RayError as error:
            raise LMError(
                f"The worker on {self._node} cannot be reached: {_first_line(error)}", usage=Usage()
            ) from None
        self._missed = 0

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """The answers, or what is known of a worker that was lost."""
        try:
            answers: list[Completion | LMError] = self._waited_for(self._actor.complete.remote(list(requests)))
            return answers
        except self._ray.exceptions.RayError as error:
            return [self._lost(_first_line(error)) for _ in requests]
        except (TimeoutError, LMError) as error:
            return [self._lost(str(error)) for _ in requests]

    def _waited_for(self, answers: Any) -> Any:
        stop_at = float("inf")
        while True:
            done, _ = self._ray.wait([answers], timeout=_LOOK)
            if done:
                return self._ray.get(answers)
            if self._patience.over and stop_at == float("inf"):
                stop_at = time.monotonic() + GRACE
            if time.monotonic() >= stop_at:
                raise TimeoutError("it had not answered when the run was stopped")
            if not self._there():
                raise TimeoutError("it has not been heard of")

    def _there(self) -> bool:
        """Whether the worker has been heard of lately; all who wait for it share one look now and then."""
        with self._mutex:
            if time.monotonic() - self._looked >= _ALIVE:
                self._looked = time.monotonic()
                try:
                    self._ray.get(self._actor.describe.remote(), timeout=_ALIVE)
                    self._missed = 0
                except self._ray.exceptions.GetTimeoutError:
                    self._missed += 1
                except self._ray.exceptions.RayError:
                    self._missed = _MISSED
            return self._missed < _MISSED

    def _lost(self, why: str) -> WorkerLost:
        usage = Usage() if self.in_process else None
        return WorkerLost(f"The worker of {self.name} on {self._node} was lost: {why}", usage=usage)


@dataclass(frozen=True, slots=True)
class Post:
    """Workers that are alike.

    Attributes:
        opener: Opens the model of each, on its machine.
        count: How many.
        places: Calls that each takes at once, at most.
        cpus: What each needs of its machine; likewise the others.
        gpus: Likewise.
        resources: Names of ``ray start --resources`` and how much of each.
    """

    opener: Opener
    count: int = 1
    places: int = 8
    cpus: float = 1.0
    gpus: float = 0.0
    resources: tuple[tuple[str, float], ...] = ()


def fleet(
    posts: Sequence[Post], address: str, name: str | None = None, rates: Rates | None = None, retries: int = 4
) -> Fleet:
    """Workers on a Ray cluster that answer as one model.

    Those whose machine is not there yet are not waited for once one is ready, and take no part.

    Raises:
        ConfigError: There is no cluster, or no worker could be made.
    """
    ray, patience = connected(address), Patience(retries)
    actors = [_actor(ray, post) for post in posts for _ in range(post.count)]
    looks = {actor.describe.remote(): actor for actor in actors}
    first, _ = ray.wait(list(looks), timeout=_READY)
    if not first:
        raise ConfigError(
            f"None of {len(actors)} workers could be started within {_READY:.0f} s. See what the machines offer with: "
            "ray status"
        )
    ready, missing = ray.wait(list(looks), num_returns=len(looks), timeout=10.0)
    for look in missing:
        ray.kill(looks[look])
    models = []
    for look in ready:
        described: Description = _told(ray, look)
        if described.version != __version__:
            raise ConfigError(
                f"The worker on {described.node} has bestprompt {described.version}, this is {__version__}. Install "
                "the same version on all machines."
            )
        models.append(RemoteModel(ray, looks[look], described, patience))
    return Fleet(models, name, rates, patience)


def open_fleet(model: ModelSettings, ray: RaySettings) -> Fleet:
    """The workers that settings describe: each opens the model of its own machine, with the key that is there."""
    posts = []
    for worker in ray.worker or (ray.all_alike,):
        changed = ModelSettings.model_validate({**model.model_dump(), **(worker.model or {})})
        # Limits and patience are the driver's: it knows all workers.
        alone = changed.model_copy(
            update={
                "max_retries": 0, "requests_per_second": None, "tokens_per_second": None, "requests_per_minute": None,
                "tokens_per_minute": None,
            }
        )  # fmt: skip
        needs = tuple((worker.resources or {}).items())
        posts.append(Post(_Opens(alone), worker.count, changed.concurrency, worker.cpus, worker.gpus, needs))
    rates = Rates(
        model.requests_per_second, model.tokens_per_second, model.requests_per_minute, model.tokens_per_minute
    )
    return fleet(posts, ray.address, model.name, rates, model.max_retries)


@dataclass(frozen=True, slots=True)
class _Opens:
    """Opens a model by its settings, on the machine where it is called."""

    settings: ModelSettings

    def __call__(self) -> LanguageModel:
        return open_model(self.settings)


def _actor(ray: Any, post: Post) -> Any:
    made = ray.remote(Host).options(
        num_cpus=post.cpus, num_gpus=post.gpus, resources=dict(post.resources), max_restarts=-1, max_task_retries=0,
        max_concurrency=post.places + 2, scheduling_strategy="SPREAD",
    )  # fmt: skip
    return made.remote(post.opener, post.places)


def _told(ray: Any, look: Any) -> Any:
    try:
        return ray.get(look)
    except ray.exceptions.RayTaskError as error:
        raise ConfigError(f"A worker could not open its model: {_first_line(error.cause)}") from None
    except ray.exceptions.RayError as error:
        raise ConfigError(f"A worker could not be started: {_last_line(error)}") from None


def _first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _last_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
