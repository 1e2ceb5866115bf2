"""Word problems and what is read from responses to them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.llm import answers
from cot2lib.llm.stories import MOST, PARTS, is_held_out, stories


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.sampled_from(PARTS), st.integers(0, 9))
def test_stories_have_right_chains_that_tell_them(steps, part, seed):
    for story in stories(5, steps, part, seed):
        sums, marked, answer = story.chain.partition(" #### ")
        lines = [line.split() for line in sums.split(" ; ")]
        assert len(lines) == steps and marked and int(answer) == story.answer
        now = int(lines[0][0])
        for before, sign, number, equals, after in lines:
            value = {"+": int(before) + int(number), "-": int(before) - int(number), "*": int(before) * int(number)}
            assert (int(before), equals, int(after)) == (now, "=", value[sign])
            assert 1 <= int(after) <= MOST
            now = int(after)
        assert now == story.answer
        told = [int(found) for found in re.findall(r"\d+", story.text)]
        assert told == [int(lines[0][0]), *(int(line[2]) for line in lines if line[1] != "*")]


def test_stories_in_brief_leave_sums_out_and_nothing_else():
    for story, brief in zip(stories(300, 3), stories(300, 3, brief=1.0)):
        results = [line.split()[-1] for line in story.chain.partition(" #### ")[0].split(" ; ")]
        assert brief.chain == f"{' ; '.join(results)} #### {story.answer}"
    some = [story.chain.count("=") for story in stories(300, 3, brief=0.5)]
    assert 400 < sum(some) < 500


@pytest.mark.parametrize("part", PARTS)
def test_stories_of_parts_differ_in_their_first_sum(part):
    for story in stories(200, 2, part):
        before, _, number, *_ = story.chain.split()
        assert is_held_out(int(before), int(number)) == (part != "training")


def test_stories_of_other_seeds():
    assert stories(9, 2, seed=1) == stories(9, 2, seed=1) != stories(9, 2, seed=2)


@pytest.mark.parametrize(
    "text, value",
    [
        ("12 + 7 = 19 #### 19", 19),
        ("#### 19 apples, not 20", 19),
        ("It is 12 and then 19.", 19),
        ("#### 3 then #### 1,234", 1234),
        ("-5", -5),
        ("\N{MINUS SIGN}5", -5),
        ("half: 0.5", 0.5),
        ("none", None),
        ("19 ####", None),
    ],
)
def test_number(text, value):
    assert answers.number(text) == value


def test_rewards_are_one_or_zero():
    assert answers.rewards(["#### 4", "#### 5", ""], [4, 4, 4]) == [1.0, 0.0, 0.0]
