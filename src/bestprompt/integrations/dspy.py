"""An optimizer for DSPy: chooses the instructions of a program's predictors and says how sure that is.

    from bestprompt.integrations.dspy import BestPrompt
    better = BestPrompt(metric=metric, budget=200, candidates=["…", "…"]).compile(program, trainset=examples)
    better.recommendation.verdict

DSPy's calls happen inside the program, so the budget counts evaluations: the program on one example and its metric. How
many requests that makes is the program's affair (one for each predictor that it calls, more where DSPy asks again).
"""

from __future__ import annotations

import contextvars
import itertools
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bestprompt.errors import ConfigError, LMAuthError, LMError, MissingExtraError
from bestprompt.integrations.programs import Candidate, Evaluated, ProgramModel, choose, in_words, numbered
from bestprompt.lm.secrets import Scrubber
from bestprompt.run.observer import Observer
from bestprompt.run.settings import Settings
from bestprompt.scoring import FunctionScorer, content_hash
from bestprompt.types import Request

try:
    import dspy
    import openai  # DSPy calls models with it
    from dspy.teleprompt import Teleprompter
    from dspy.utils import exceptions as dspy_errors
except ImportError:
    raise MissingExtraError("The optimizer for DSPy", "dspy") from None

MOST_COMBINATIONS = 500
# What a server or the way to it did: asked again, and no evidence against a prompt. Earlier versions raise openai's.
_FAILED_CALLS: tuple[type[Exception], ...] = (openai.OpenAIError, getattr(dspy_errors, "LMError", openai.OpenAIError))


class BestPrompt(Teleprompter):  # type: ignore[misc]
    """Chooses instructions within a hard budget of program evaluations.

    Args:
        metric: ``metric(example, prediction)``: a truth value, a number, or a ``Prediction`` with a ``score``.
        budget: Evaluations of the program allowed: one is the program on one example.
        candidates: Instructions to choose from besides the program's own, which are the incumbent. For a program with
            one predictor a list of texts; with several a list of mappings from a predictor's name to its instructions
            (those left out stay as they are), or a mapping from names to lists, of which all combinations are tried.
            Instructions of several predictors are chosen jointly.
        score_range: The lowest and the highest score the metric may return.
        num_threads: Evaluations at once; DSPy's own setting if left out.
        max_errors: Programs or metrics that may raise before the run stops; DSPy's own setting if left out. An example
            on which they raise scores lowest, as in DSPy; a failed call to the model is asked again instead.
        seed: Decides every random choice.
        ledger: Folder of the run. A run that is already there is continued, and pays for nothing twice.
        config: Settings or a TOML file, for instance with ``[search] source = "latent"`` to invent instructions for a
            program with one predictor. Without it the given candidates are all there are.
        observer: Is told how the run goes (:class:`bestprompt.run.Observer`).
    """

    def __init__(
        self,
        metric: Callable[..., Any],
        budget: int = 300,
        *,
        candidates: Sequence[str | Candidate] | Mapping[str, Sequence[str]] = (),
        score_range: tuple[float, float] = (0.0, 1.0),
        num_threads: int | None = None,
        max_errors: int | None = None,
        seed: int = 0,
        ledger: str | Path | None = None,
        config: Settings | str | Path | None = None,
        observer: Observer | None = None,
    ) -> None:
        super().__init__()
        self.metric, self.budget, self.candidates, self.score_range = metric, budget, candidates, score_range
        self.num_threads, self.max_errors, self.seed = num_threads, max_errors, seed
        self.ledger, self.config, self.observer = ledger, config, observer

    def compile(
        self,
        student: Any,
        *,
        trainset: Sequence[Any],
        teacher: Any = None,
        valset: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A copy of ``student`` with the chosen instructions; ``recommendation`` of it says how sure that is.

        The program's own instructions stay unless others are better with a probability of at least .9.

        Args:
            student: The program; it is not changed.
            trainset: Examples to choose on.
            teacher: Not used.
            valset: Examples to choose on instead of ``trainset``, where given.
            **kwargs: None are known.
        """
        if teacher is not None or kwargs:
            unknown = ", ".join([*(["teacher"] if teacher is not None else []), *kwargs])
            raise ConfigError(f"BestPrompt.compile takes trainset and valset, and no {unknown}.")
        examples = list(valset or trainset)
        if not examples:
            raise ConfigError("BestPrompt.compile needs examples: trainset is empty.")
        own = {name: predictor.signature.instructions for name, predictor in student.named_predictors()}
        if not own:
            raise ConfigError(f"{type(student).__name__} has no predictor whose instructions could be chosen.")
        pairs, numbers = numbered([(in_words(e.inputs().toDict()), in_words(e.labels().toDict())) for e in examples])
        models = _language_models(student)
        running = _Running(student, examples, self.metric, self.score_range[0], self._most_errors, models)
        model = ProgramModel(
            running,
            tuple(own),
            numbers,
            name=f"{type(student).__name__} on {', '.join(sorted({str(m.model) for m in models})) or 'no model'}",
            fingerprint=f"dspy:{content_hash([type(student).__name__, repr(student.dump_state())])}",
            range=self.score_range,
            deterministic=bool(models) and all(map(_repeats_itself, models)),
            concurrency=self.num_threads or dspy.settings.num_threads or 1,
            writer=running.write,
        )
        chosen, recommendation = choose(
            model,
            pairs,
            [own, *combinations(own, self.candidates)],
            name=type(student).__name__,
            metric=FunctionScorer(self.metric).fingerprint,
            budget=self.budget,
            seed=self.seed,
            ledger=self.ledger,
            config=self.config,
            observer=self.observer,
        )
        compiled = with_instructions(student, chosen)
        compiled._compiled = True
        compiled.recommendation = recommendation
        return compiled

    @property
    def _most_errors(self) -> int:
        return int(self.max_errors if self.max_errors is not None else dspy.settings.max_errors)


def combinations(
    own: Candidate, candidates: Sequence[str | Candidate] | Mapping[str, Sequence[str]]
) -> list[dict[str, str]]:
    """Complete candidates from what a user gives beside a program's ``own`` instructions.

    Raises:
        ConfigError: A text for a program with several predictors, a name that no predictor has, or too many.
    """
    if isinstance(candidates, Mapping):
        _known(own, candidates)
        lists = [list(dict.fromkeys([text, *candidates.get(name, ())])) for name, text in own.items()]
        if (count := math.prod(map(len, lists))) > MOST_COMBINATIONS:
            raise ConfigError(
                f"These candidates have {count} combinations, more than {MOST_COMBINATIONS}. Give fewer, or the "
                "combinations you want as a list of mappings."
            )
        return [dict(zip(own, texts, strict=True)) for texts in itertools.product(*lists)]
    made: list[dict[str, str]] = []
    for candidate in candidates:
        if isinstance(candidate, str):
            if len(own) > 1:
                raise ConfigError(
                    f"The program has {len(own)} predictors ({', '.join(own)}): say whose instructions these are, like "
                    f"{{{next(iter(own))!r}: {candidate[:40]!r}}}."
                )
            made.append({next(iter(own)): candidate})
        else:
            _known(own, candidate)
            made.append({**own, **candidate})
    return made


def _known(own: Candidate, named: Mapping[str, Any]) -> None:
    if unknown := [name for name in named if name not in own]:
        raise ConfigError(f"No predictor is named {unknown[0]!r}; there are {', '.join(own)}.")


def with_instructions(program: Any, candidate: Candidate) -> Any:
    """A copy of ``program`` with these instructions."""
    copied = program.deepcopy()
    for name, predictor in copied.named_predictors():
        predictor.signature = predictor.signature.with_instructions(candidate[name])
    return copied


class _Running:
    """A program on its examples; see :class:`bestprompt.integrations.programs.Program`."""

    def __init__(
        self,
        student: Any,
        examples: Sequence[Any],
        metric: Callable[..., Any],
        lowest: float,
        most_errors: int,
        models: Sequence[Any],
    ) -> None:
        self._student, self._examples, self._metric, self._lowest = student, examples, metric, lowest
        self._most_errors, self._errors = most_errors, 0
        self._programs: dict[str, Any] = {}
        self._lock = threading.Lock()
        # Settings made by ``with dspy.context(...)`` belong to the thread that compiles; threads of a run copy them.
        self._context = contextvars.copy_context()
        keys = [model.kwargs.get("api_key") for model in models]
        self._scrubbed = Scrubber(*keys, os.environ.get("OPENAI_API_KEY"))

    def evaluate(self, candidate: Candidate, examples: Sequence[int]) -> list[Evaluated | LMError]:
        """One example after the other."""
        return [self._context.copy().run(self._one, candidate, self._examples[number]) for number in examples]

    def write(self, request: Request) -> str:
        """What DSPy's own model answers to a request for further candidates."""
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        options = {"temperature": request.temperature, "max_tokens": request.max_tokens}
        answer = self._context.copy().run(lambda: dspy.settings.lm(messages=messages, **options))[0]
        return str(answer["text"] if isinstance(answer, dict) else answer)

    def _one(self, candidate: Candidate, example: Any) -> Evaluated | LMError:
        try:
            prediction = self._program(candidate)(**example.inputs())
            value = self._metric(example, prediction)
            return Evaluated(_number(value), in_words(dict(prediction.items())))
        except _FAILED_CALLS as error:
            return self._failed_call(error)
        except Exception as error:  # as in DSPy: what cannot be answered or scored scores lowest, up to a number
            return self._raised(error)

    def _program(self, candidate: Candidate) -> Any:
        key = repr(sorted(candidate.items()))
        with self._lock:
            if key not in self._programs:
                self._programs[key] = with_instructions(self._student, candidate)
            return self._programs[key]

    def _failed_call(self, error: Exception) -> LMError:
        said = self._scrubbed(f"{type(error).__name__}: {error}")
        status = getattr(error, "status", None) or getattr(error, "status_code", None)
        return LMAuthError(said) if status in (401, 403) else LMError(said)

    def _raised(self, error: Exception) -> Evaluated | LMError:
        said = self._scrubbed(f"{type(error).__name__}: {error}")
        if isinstance(error, dspy_errors.AdapterParseError):  # the model's answer was no answer: that is evidence
            return Evaluated(self._lowest, said)
        with self._lock:
            self._errors += 1
            errors = self._errors
        if errors > self._most_errors:
            return LMError(
                f"The program or its metric raised {errors} times, more than max_errors = {self._most_errors}; "
                f"the last was {said}",
                retryable=False,
                systemic=True,
            )
        return Evaluated(self._lowest, said)


def _number(value: Any) -> float:
    """What a metric returned, as a number; a ``Prediction`` is one by its ``score``."""
    return float(value["score"] if isinstance(value, dspy.Prediction) else value)


def _language_models(program: Any) -> list[Any]:
    """The models that the predictors ask."""
    found = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    return [model for model in dict.fromkeys(found) if model is not None]


def _repeats_itself(model: Any) -> bool:
    """Whether a question that was asked before gets the answer that it had: from DSPy's cache, or at temperature 0."""
    return bool(getattr(model, "cache", False)) or getattr(model, "kwargs", {}).get("temperature") == 0
