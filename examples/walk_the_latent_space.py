# %% [markdown]
# # What the search stage does
#
# Prompts become points, points become prompts. A notebook as a script: run it cell by cell, or whole.

# %%
import numpy as np

import bestprompt as bp

examples = [
    "Sort the words in alphabetical order.",
    "Put the following words in order from A to Z.",
    "Arrange the list alphabetically.",
    "Order these words by their first letter.",
]
autoencoder = bp.Autoencoder.pretrained()

# %% [markdown]
# Every prompt has a place in the box [-1, 1]^D, and the way back leads to the same text once the network has been tuned
# to the examples.

# %%
tuned = autoencoder.fine_tune(examples)
X = tuned.encode(examples)
print(X.shape, "inside the box:", bool(np.abs(X).max() <= 1), "| read back:", tuned.decode(X) == examples)

# %% [markdown]
# Halfway between two prompts lies something like both.

# %%
for share in (0.0, 0.25, 0.5, 0.75, 1.0):
    print(f"{share:.2f}", tuned.decode((1 - share) * X[:1] + share * X[1:2])[0])

# %% [markdown]
# The search stage takes random steps from the examples, reads them, and keeps what is new, whole and close to what was
# asked for. Z are the coordinates that the selection stage learns from.

# %%
pool = bp.build_candidates(examples, n=12, seed=0)
for prompt, parent in zip(pool.prompts, pool.parents, strict=True):
    print(prompt if parent < 0 else f"{prompt}  ← {pool.prompts[parent]}")
print("soft prompts:", pool.Z.shape)
