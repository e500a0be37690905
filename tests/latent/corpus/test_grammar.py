from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import clean_sampled, frame_weights, sentences
from bestprompt.rng import stream


def test_grammar_is_large_and_leaves_no_notation_behind() -> None:
    found = sentences(Grammar.bundled(), 3000, stream(0, "grammar"))
    assert len(set(found)) > 2400
    assert not [text for text in found if set("@$|{}") & set(text) or "  " in text or not text[0].isupper()]


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
