"""Several language models behind one: a request names the one that it is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bestprompt.errors import ConfigError, LMError
from bestprompt.lm import abilities
from bestprompt.lm.patience import Heard, Patience
from bestprompt.types import Completion, LanguageModel, Request


class Several:
    """A ``LanguageModel`` that passes each request on to the model it names; to the first if it names none.

    Args:
        models: At least two, with names of their own.

    Attributes:
        models: Name → model, in the order given.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        self.models = {model.name: model for model in models}
        if len(self.models) < max(len(models), 2):
            names = ", ".join(model.name for model in models)
            raise ConfigError(f"Several models need a name each, to tell them apart; given: {names or 'none'}.")
        self.name = ", ".join(self.models)
        self.fingerprint = " | ".join(model.fingerprint for model in models)
        self.batch_size = min(model.batch_size for model in models)
        self.concurrency = sum(model.concurrency for model in models)
        self.deterministic = all(map(abilities.deterministic, models))
        self.in_process = all(map(abilities.in_process, models))
        self.patience = _SharedPatience([p for model in models if (p := abilities.patience(model)) is not None])

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in the order of the requests, each by the model it names."""
        answers: dict[int, Completion | LMError] = {}
        for model in {id(m): m for m in map(self.asked, requests)}.values():
            own = [n for n, request in enumerate(requests) if self.asked(request) is model]
            found = model.complete([replace(requests[n], model="") for n in own])
            answers.update(zip(own, found, strict=True))
        return [answers[n] for n in range(len(requests))]

    def max_prompt_tokens(self, request: Request) -> int:
        """As the model that is asked says."""
        return self.asked(request).max_prompt_tokens(replace(request, model=""))

    def ping(self) -> None:
        """Returns if all of them answer."""
        for model in self.models.values():
            abilities.ping(model)

    def asked(self, request: Request) -> LanguageModel:
        """The model that ``request`` is for."""
        return self.models[request.model] if request.model else next(iter(self.models.values()))


class _SharedPatience(Patience):
    """Stands for the patience of several models: each waits by itself, all are heard, all give up together."""

    def __init__(self, parts: Sequence[Patience]) -> None:
        super().__init__(retries=0)
        self._parts = parts

    @contextmanager
    def heard_by(self, heard: Heard) -> Iterator[None]:
        with ExitStack() as stack:
            for part in self._parts:
                stack.enter_context(part.heard_by(heard))
            yield

    def give_up(self) -> None:
        for part in self._parts:
            part.give_up()


def names_of(lm: LanguageModel) -> tuple[str, ...]:
    """The names of the models that ``lm`` is made of; none where it is a single one."""
    return tuple(lm.models) if isinstance(lm, Several) else ()


def first_of(lm: LanguageModel) -> LanguageModel:
    """The first of several models, which also writes and judges; a single one is its own."""
    return next(iter(lm.models.values())) if isinstance(lm, Several) else lm
