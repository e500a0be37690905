"""SentenceNetwork weights on disk: safetensors, with the sizes of the network in the metadata."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from bestprompt.latent.network import NetworkSizes, SentenceNetwork

WEIGHTS = Path(str(files("bestprompt.latent").joinpath("weights")))
"""The folder of what ships with the package: weights, tokenizer, and the texts they were trained on."""
WEIGHTS_NAME = "autoencoder.safetensors"


def _named(network: SentenceNetwork) -> dict[str, jax.Array]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(network, eqx.is_array))
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}


def save_network(network: SentenceNetwork, path: Path, *, half: bool = False) -> None:
    """Write all weights, in half precision if asked; the file appears complete or not at all."""
    dtype = np.float16 if half else np.float32
    tensors = {name: np.asarray(leaf, dtype) for name, leaf in _named(network).items()}
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(save(tensors, metadata={"shape": json.dumps(network.shape.to_dict())}))
    unfinished.replace(path)


def load_network(path: Path) -> SentenceNetwork:
    """Read what ``save_network`` wrote, as single precision."""
    with safe_open(path, framework="numpy") as file:
        shape = NetworkSizes(**json.loads(file.metadata()["shape"]))
        skeleton = eqx.filter_eval_shape(SentenceNetwork, shape, jax.random.key(0))
        names = [jax.tree_util.keystr(p).lstrip(".") for p, _ in jax.tree_util.tree_leaves_with_path(skeleton)]
        leaves = [jnp.asarray(file.get_tensor(name), jnp.float32) for name in names]
    network: SentenceNetwork = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(skeleton), leaves)
    return network
