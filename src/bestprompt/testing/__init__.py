"""The contracts that a part is held to, for yours as for ours.

Each check is a function that takes the part and raises ``AssertionError`` where a promise is broken:

>>> import pytest
>>> from bestprompt.testing import surrogate_checks
>>> @pytest.mark.parametrize("check", surrogate_checks)
... def test_my_surrogate(check):
...     check(MySurrogate())

``check_surrogate(MySurrogate())`` makes all of them at once; likewise for acquisitions, maximisers, scorers,
models, autoencoders and sources of candidates.
"""

from bestprompt.testing.acquisitions import (
    acquisition_checks,
    check_acquisition,
    check_maximizer,
    maximizer_checks,
)
from bestprompt.testing.autoencoders import autoencoder_checks, check_autoencoder
from bestprompt.testing.models import check_model, model_checks
from bestprompt.testing.scorers import check_scorer
from bestprompt.testing.sources import check_source
from bestprompt.testing.surrogates import check_surrogate, gentle_problem, surrogate_checks

__all__ = [
    "acquisition_checks",
    "autoencoder_checks",
    "check_acquisition",
    "check_autoencoder",
    "check_maximizer",
    "check_model",
    "check_scorer",
    "check_source",
    "check_surrogate",
    "gentle_problem",
    "maximizer_checks",
    "model_checks",
    "surrogate_checks",
]
