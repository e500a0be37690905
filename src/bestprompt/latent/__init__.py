"""Text ↔ latent vectors ↔ soft prompts: the autoencoder, its fine-tuning, PCA, and a lexical stand-in."""

from bestprompt.latent.autoencoder import Autoencoder
from bestprompt.latent.contract import KnowsWords, LearnsWords, TextAutoencoder, TuningProgress
from bestprompt.latent.lexical import lexical_rows
from bestprompt.latent.space import SoftSpace

__all__ = [
    "Autoencoder",
    "KnowsWords",
    "LearnsWords",
    "SoftSpace",
    "TextAutoencoder",
    "TuningProgress",
    "lexical_rows",
]
