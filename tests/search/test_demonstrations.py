from itertools import combinations

import numpy as np
import pytest

from bestprompt.search import embed_candidates
from bestprompt.search.across import across, spread
from bestprompt.search.demonstrations import DEMONSTRATIONS, ROOM, SETS, draw_sets, with_demonstrations, with_sets

PROMPTS = embed_candidates(["Sort the words.", "Name the team.", "Add the numbers up."], sources=["example"] * 3)


def show(prompt: str, shown: tuple[int, ...]) -> str:
    return f"{prompt} {shown}"


@pytest.mark.parametrize(("pool", "size"), [(4, 1), (4, 2), (8, 4), (6, 5), (3, 3)])
def test_sets_differ_and_depend_on_the_seed_alone(pool: int, size: int) -> None:
    answers = ["a", "b"] * pool
    for seed in range(20):
        sets = draw_sets(answers[:pool], size, seed)
        assert sets == draw_sets(answers[:pool], size, seed)
        assert (
            len({frozenset(each) for each in sets})
            == len(sets)
            == min(SETS, len(list(combinations(range(pool), size))))
        )
        assert all(len(set(each)) == size and max(each) < pool for each in sets)


def test_two_sets_share_no_pair_and_the_first_shows_as_many_answers_as_it_can() -> None:
    answers = ["a", "a", "a", "a", "a", "b", "c", "d"]
    for seed in range(20):
        first, second = draw_sets(answers, 4, seed)[:2]
        assert not set(first) & set(second)
        assert {answers[n] for n in first} == {"a", "b", "c", "d"}


def test_every_prompt_without_and_with_every_set() -> None:
    sets = draw_sets("abcdefgh", 4, 0)
    made = with_demonstrations(PROMPTS, sets, show, 0)
    assert made.prompts[:3] == PROMPTS.prompts
    assert set(made.prompts[3:]) == {show(prompt, each) for prompt in PROMPTS.prompts for each in sets}
    assert made.sources[3:] == ("example + demonstrations",) * 12
    assert all(made.prompts[n].startswith(made.prompts[made.parents[n]]) for n in range(3, 15))
    assert made.X is None
    of = made.details[DEMONSTRATIONS]["of"]
    assert of[:3] == [-1] * 3
    assert all(made.prompts[n].endswith(str(sets[of[n]])) for n in range(3, 15))
    assert len(made.prompts) == with_sets(3, 8, 4) == 15


def test_the_same_instruction_and_the_same_set_are_near() -> None:
    sets = draw_sets("abcdefgh", 4, 0)
    made, c = with_demonstrations(PROMPTS, sets, show, 0), spread(PROMPTS.Z)
    of, parent = np.array(made.details[DEMONSTRATIONS]["of"]), np.where(made.parents < 0, np.arange(15), made.parents)
    for n, m in combinations(range(15), 2):
        apart = ((PROMPTS.Z[parent[n]] - PROMPTS.Z[parent[m]]) ** 2).sum()
        between = 0.0 if of[n] == of[m] else 0.5 * c**2 if min(of[n], of[m]) >= 0 else 1.25 * c**2
        assert ((made.Z[n] - made.Z[m]) ** 2).sum() == pytest.approx(apart + between)


def test_many_prompts_get_one_set_each_and_all_sets_their_turn() -> None:
    many = embed_candidates([f"Prompt number {n} of many." for n in range(ROOM)], dim=3)
    sets = draw_sets("abcdefgh", 4, 0)
    made = with_demonstrations(many, sets, show, 5)
    assert len(made.prompts) == 2 * ROOM == with_sets(ROOM, 8, 4)
    assert np.bincount(np.array(made.details[DEMONSTRATIONS]["of"][ROOM:])).tolist() == [ROOM // 4] * 4


def test_on_several_models() -> None:
    made = across(with_demonstrations(PROMPTS, draw_sets("abcd", 2, 0), show, 0), ["m", "n"])
    assert len(made.prompts) == 30
    assert made.Z.shape == (30, PROMPTS.Z.shape[1] + 1 + 4 + 2)
