"""Every text that the speller lets through consists of attested words, and every such text can be written."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.latent.lexicon import CLOSINGS, LONE_MARKS, OPENINGS, Lexicon, read_lexicon
from bestprompt.latent.network import BEGIN, END, PAD
from bestprompt.latent.speller import Speller
from bestprompt.latent.tokens import Codec
from bestprompt.latent.weights_file import WEIGHTS

WORDS = [
    "sort",
    "the",
    "words",
    "reimbursement",
    "reimburse",
    "don't",
    "e.g",
    "e",
    "well-known",
    "well",
    "French",
    "12",
]
OWN = ["Fülle {name}  in, bitte!", "🎉 按字母排列。", "if (a[i] == b) { c; }", "x\u00a0y\x1cz »q« \u2028 ok"]
LENGTH = 64


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.load(WEIGHTS / "tokenizer.json")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon(frozenset(WORDS)).with_words_of(OWN)


@pytest.fixture(scope="module")
def speller(lexicon: Lexicon, codec: Codec) -> Speller:
    return Speller.of(lexicon, codec)


_spells = eqx.filter_jit(lambda speller, rows: speller.spells(rows))
_next = eqx.filter_jit(lambda speller, state: (speller.allowed(state), speller.may_end(state)))
_after = eqx.filter_jit(lambda speller, state, piece: speller.after(state, piece))


def spelled(speller: Speller, codec: Codec, text: str) -> bool:
    return bool(_spells(speller, codec.rows([text], LENGTH))[0])


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("Sort the words.", True),
        ('Sort "words", e.g. (French) the -> well-known; well?', True),
        ("E.g., don't sort 12 words...", True),
        ("Sort the word.", False),
        ("Reimbur the words", False),
        ("Sortthe words", False),
        ("Sort the words ,", False),
        ("well-sort", False),
        ("Fülle 🎉 {name}, sort bitte.", True),
        ("Sort 列排字。", True),
    ],
)
def test_what_can_be_written(speller: Speller, codec: Codec, text: str, fine: bool) -> None:
    assert spelled(speller, codec, text) == fine


chunk = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "", *OPENINGS]),
    st.sampled_from([*WORDS, *(word.capitalize() for word in WORDS[:5]), "{name}", "bitte", "字"]),
    st.sampled_from(["", "", "", *CLOSINGS]),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.one_of(chunk, chunk, st.sampled_from(LONE_MARKS)), min_size=1, max_size=6).map(" ".join))
def test_attested_words_between_marks_can_be_written(
    speller: Speller, codec: Codec, lexicon: Lexicon, text: str
) -> None:
    assert lexicon.unattested(text) == []
    # A mark of a word and the mark behind it may be one token that no entry has: "{name}" and ".".
    assert spelled(speller, codec, text) or "{name}" in text


@pytest.mark.slow
def test_any_walk_ends_in_attested_words(speller: Speller, codec: Codec, lexicon: Lexicon) -> None:
    """Whatever the decoder prefers: pieces are drawn among those allowed, and every walk comes to an end."""
    rng, n = np.random.default_rng(0), 256
    state, rows, ended = np.zeros(n, np.int32), np.full((n, 200), PAD, np.int32), np.zeros(n, bool)
    for at in range(rows.shape[1]):
        allowed, may_end = map(np.asarray, _next(speller, state))
        assert not allowed[:, [PAD, BEGIN]].any()
        assert np.array_equal(allowed[:, END], may_end)
        # Bytes, of which long words consist, are as likely as all whole words together.
        few = np.cumsum(allowed, axis=1) <= np.where(rng.random(n) < 0.5, 8, allowed.shape[1])[:, None]
        piece = np.argmax(np.where(allowed & few, rng.random(allowed.shape), -1.0), axis=1)
        rows[:, at] = np.where(ended, PAD, piece)
        ended |= piece == END
        state = np.where(ended, state, _after(speller, state, piece))
        if ended.all():
            break
    assert ended.all()
    texts = codec.texts(rows)
    assert all(texts)
    assert len(set(texts)) > n // 2
    assert [lexicon.unattested(text) for text in texts] == [[]] * n


@pytest.mark.slow
def test_a_users_words_change_no_shape(codec: Codec) -> None:
    shipped = read_lexicon(WEIGHTS / "lexicon.txt.gz")
    one, two = (Speller.of(each, codec) for each in (shipped, shipped.with_words_of(OWN)))
    assert [leaf.shape for leaf in (one.bits, one.edges, one.begin)] == [
        leaf.shape for leaf in (two.bits, two.edges, two.begin)
    ]


def test_without_a_lexicon_anything_goes() -> None:
    free = Speller.free(100)
    state = jnp.zeros(2, jnp.int32)
    assert bool(free.allowed(state).all())
    assert free.after(state, jnp.array([5, 99])).tolist() == [0, 0]
