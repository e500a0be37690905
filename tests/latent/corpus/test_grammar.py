from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import clean_sampled, frame_weights, sentences
from bestprompt.rng import stream


def test_grammar_is_large_and_leaves_no_notation_behind() -> None:
    found = sentences(Grammar.bundled(), 3000, stream(0, "grammar"))
    assert len(set(found)) > 2400
    assert not [text for text in found if set("@$|{}") & set(text) or "  " in text or not text[0].isupper()]


def test_the_wide_grammar_adds_long_casual_and_labelled_requests() -> None:
    found = sentences(Grammar.wide(), 3000, stream(0, "wide"))
    assert len(set(found)) > 2700
    assert not [text for text in found if set("@$|{}") & set(text) or "  " in text]
    assert 0.05 < sum(text == text.lower() for text in found) / len(found) < 0.2
    assert max(len(text.split()) for text in found) > 25
    assert any("[" in text for text in found)


def test_whole_requests_keep_their_own_marks() -> None:
    grammar = Grammar.parse("== x\n$w = cat/cats\nin a $w.1\nout one $w.1\n. Which $w.1 is it? [black, white]\n")
    forms = {grammar.form(grammar.frames[0], {"w": ["cat", "cats"]}, stream(0, "whole", n)) for n in range(5)}
    assert forms == {"Which cat is it? [black, white]"}


def test_forms_of_one_instance_share_its_values() -> None:
    grammar = Grammar.parse(
        "@do = sort | order\n== x\n$w = cat/cats | dog/dogs\nin a $w.1\nout one $w.1\n! @do the $w.2\n"
        "? which $w.1 is first\n"
    )
    rng = stream(0, "forms")
    values = grammar.instance(grammar.frames[0], rng)
    other = {"cat": "dog", "dog": "cat"}[values["w"][0]]
    forms = {grammar.form(grammar.frames[0], values, rng) for _ in range(60)}
    assert len(forms) > 15
    assert not any(other in form for form in forms)
    assert all(values["w"][0] in form for form in forms)


def test_every_frame_has_a_positive_weight() -> None:
    weights = frame_weights(Grammar.bundled())
    assert weights.min() > 0
    assert abs(weights.sum() - 1) < 1e-12


def test_sampled_lines_are_cleaned() -> None:
    lines = [
        "Sort the words:.",
        "Sort the words:",
        "Too short.",
        'Say "hello to all.',
        "写 the words now.",
        "Sort the words:.",
    ]
    assert clean_sampled(lines) == ["Sort the words:"]
