# %% [markdown]
# # Choosing a prompt for a task of your own
#
# A notebook as a script: run it cell by cell in an editor that knows `# %%`, or whole with `python choose_a_prompt.py`.
# The model here is a function that plays a model, so that the truth is known and nothing is paid.

# %%
import bestprompt as bp
from bestprompt.rng import stream

REVIEWS = {
    "positive": [
        "Best holiday ever!",
        "I would buy it again.",
        "Friendly and fair.",
        "Lovely view.",
        "Works like a charm.",
    ],
    "negative": [
        "It broke at once.",
        "Never again.",
        "Cold soup, rude waiter.",
        "Late and scratched.",
        "A waste of money.",
    ],
}
pairs = [(text, label) for label, texts in REVIEWS.items() for text in texts]
PROMPTS = {  # how often the pretended model gets a review right with each of them
    "What is the sentiment?": 0.6,
    "Is this review positive or negative? Answer with one word.": 0.95,
    "How does the writer feel?": 0.4,
    "Positive or negative?": 0.85,
}

# %% [markdown]
# The model answers in sentences, as models do. The score looks for the label in what it says.


# %%
def chatty(request):
    prompt, review = request.messages[-1].content.split("\n\n")
    label = next(label for text, label in pairs if text == review)
    if stream(0, "right", prompt, review).random() > PROMPTS[prompt]:
        label = "mixed"
    return f"I think that this review is {label}."


task = bp.Task.from_pairs(pairs, list(PROMPTS), scorer="contains")
model = bp.lm.function(chatty, deterministic=True)

# %% [markdown]
# Four prompts and ten reviews make forty different questions, and at temperature 0 no question is asked twice. A run
# ends earlier if what is left to ask would not change the answer.

# %%
rec = bp.optimize(task, model, budget=40, incumbent="What is the sentiment?")
print(rec.verdict)
print(f"{rec.calls} of 40 questions asked")

# %% [markdown]
# How sure is that? With ten pairs, not very: the interval says so.

# %%
low, high = rec.interval
print("use:", rec.prompt)
print(f"score {rec.score:.2f} ({low:.2f} to {high:.2f}), best with probability {rec.probability_best:.2f}")
