"""The bank as a whole: what it covers, and that nothing but knowing the answer helps."""

import math
from itertools import combinations

from quizsite.content.coverage import bank_gaps
from quizsite.content.files import read_content
from quizsite.questions.validation import QuestionSpec

QUESTIONS = read_content().questions
SINGLE = {slug: question for slug, question in QUESTIONS.items() if question.kind == "single_choice"}


def hits_by_chance() -> tuple[float, float]:
    """Return how many single choices are right by chance, and the standard deviation of that number."""
    shares = [1 / len(question.options) for question in SINGLE.values()]
    return sum(shares), math.sqrt(sum(share * (1 - share) for share in shares))


def n_right(chosen: list[int]) -> int:
    return sum(question.options[at].right for at, question in zip(chosen, SINGLE.values(), strict=True))


def test_facts_mistakes_and_scenarios_are_covered():
    assert bank_gaps(QUESTIONS) == []


def test_there_are_questions_enough_of_each_kind():
    def count(kind: str) -> int:
        return sum(question.kind == kind for question in QUESTIONS.values())

    assert len(QUESTIONS) >= 150
    assert sum(question.level == "scenario" and bool(question.lab) for question in QUESTIONS.values()) >= 25
    assert sum(bool(question.numeric and question.numeric.parameters) for question in QUESTIONS.values()) >= 25
    assert count("explain") >= 20
    assert count("predict") >= 15


def test_levels_are_balanced():
    levels = [question.level for question in QUESTIONS.values()]

    assert all(levels.count(level) >= len(levels) / 10 for level in set(levels))


def test_the_longest_option_and_each_place_are_right_no_more_often_than_by_chance():
    expected, deviation = hits_by_chance()
    longest = [
        max(range(len(question.options)), key=lambda at: len(question.options[at].text)) for question in SINGLE.values()
    ]
    shortest = [
        min(range(len(question.options)), key=lambda at: len(question.options[at].text)) for question in SINGLE.values()
    ]

    assert n_right(longest) <= expected + 1.65 * deviation
    assert n_right(shortest) <= expected + 1.65 * deviation
    for place in range(3):
        assert n_right([place] * len(SINGLE)) <= expected + 2 * deviation


def test_no_two_questions_are_alike():
    def words(question: QuestionSpec) -> set[str]:
        return set(question.text.lower().split())

    pairs = combinations(QUESTIONS.items(), 2)
    alike = [
        (one, other)
        for (one, ours), (other, theirs) in pairs
        if len(words(ours) & words(theirs)) / len(words(ours) | words(theirs)) > 0.5
    ]
    titles = [question.title for question in QUESTIONS.values()]

    assert alike == []
    assert len(set(titles)) == len(titles)


def test_every_answer_can_be_said_in_about_a_minute():
    lengths = {slug: len(question.answer.split()) for slug, question in QUESTIONS.items()}

    assert {slug: n for slug, n in lengths.items() if not 60 <= n <= 190} == {}
