"""The content files: what is there is valid; what is not is refused with its file and line, and nothing changes."""

from io import StringIO
from pathlib import Path
from shutil import copytree

import pytest
from django.core.management import CommandError, call_command

from quizsite.content.coverage import gaps
from quizsite.content.files import CONTENT_DIR, read_content
from quizsite.labs.models import Lab
from quizsite.labs.proofs import proved
from quizsite.labs.validation import read_lab
from quizsite.questions.models import Question, QuestionVersion

CONTENT = read_content()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copytree(CONTENT_DIR / "bank", tmp_path / "bank")
    copytree(CONTENT_DIR / "labs", tmp_path / "labs")
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def load(folder: Path = CONTENT_DIR) -> str:
    out = StringIO()
    call_command("load_content", folder=folder, stdout=out)
    return out.getvalue()


def test_every_file_is_valid():
    assert CONTENT.mistakes == []
    assert len(CONTENT.questions) >= 10


QUICK = [slug for slug, lab in CONTENT.labs.items() if lab.is_quick]


@pytest.mark.parametrize("slug", QUICK)
def test_a_labs_start_fails_and_each_goals_solution_passes(slug: str):
    lab = CONTENT.labs[slug]

    assert not all(verdict.is_met for verdict in lab.judge(lab.start_params))
    for number in range(len(lab.goals)):
        assert lab.judge_solution(number).is_met


@pytest.mark.real_model
@pytest.mark.parametrize("slug", [slug for slug in CONTENT.labs if slug not in QUICK])
def test_a_lab_on_the_real_model_is_proved(slug: str):
    assert proved(CONTENT.labs[slug]) == []  # kept from `make check`, unless a lab or the code has changed since


@pytest.mark.parametrize("slug", CONTENT.questions)
def test_a_question_gives_reasons_follow_ups_and_names_facts(slug: str):
    question = CONTENT.questions[slug]

    assert 1 <= len(question.facts) <= 3
    assert len(question.follow_ups) >= 2
    assert 80 <= len(question.answer.split()) <= 170  # sixty seconds of speech
    assert all(len(option.why.split()) >= 8 for option in question.options)


def test_the_five_levels_have_their_required_questions():
    required = {
        "longer-answer-longer-wait": ("beginner", "M5"),
        "why-a-model-repeats-itself": ("intermediate", "S2"),
        "no-plan-before-the-answer": ("advanced", "M4"),
        "chatbot-repeats-one-sentence": ("scenario", "S5"),
        "one-pass-per-token-and-the-cache": ("ai-engineering", "C7"),
    }

    for slug, (level, fact) in required.items():
        assert CONTENT.questions[slug].level == level
        assert fact in CONTENT.questions[slug].facts


@pytest.mark.django_db
def test_loading_twice_changes_nothing():
    before = list(QuestionVersion.objects.values_list("pk", "number"))

    assert load().splitlines() == [f"{len(CONTENT.questions)} questions and {len(CONTENT.labs)} labs: nothing changed"]
    assert list(QuestionVersion.objects.values_list("pk", "number")) == before


@pytest.mark.django_db
def test_an_edit_makes_a_new_version_and_says_so(folder: Path):
    edit(folder / "bank/selection/chatbot-repeats-one-sentence.yaml", "A travel chatbot", "A shop’s chatbot")

    assert "question chatbot-repeats-one-sentence: version 2" in load(folder)
    question = Question.objects.get(slug="chatbot-repeats-one-sentence")
    assert question.current
    assert question.current.text.startswith("A shop’s chatbot")
    assert question.versions.get(number=1).text.startswith("A travel chatbot")


@pytest.mark.django_db
def test_a_new_level_moves_the_question_without_a_new_version(folder: Path):
    edit(folder / "bank/selection/chatbot-repeats-one-sentence.yaml", "level: scenario", "level: advanced")

    assert "question chatbot-repeats-one-sentence: level\n" in load(folder)
    assert Question.objects.get(slug="chatbot-repeats-one-sentence").versions.count() == 1


BROKEN = [
    ("bank/selection/chatbot-repeats-one-sentence.yaml", "facts: [S5, S2]", "facts: [S5, Z9]", 5, "facts.1: "),
    (
        "bank/selection/chatbot-repeats-one-sentence.yaml",
        "    right: true\n",
        "",
        11,
        "exactly one option must be right",
    ),
    ("bank/selection/chatbot-repeats-one-sentence.yaml", "level: scenario", "level: hard", 2, "level: "),
    ("bank/selection/chatbot-repeats-one-sentence.yaml", "kind: single_choice", "kind: essay", 3, "kind: "),
    (
        "bank/selection/chatbot-repeats-one-sentence.yaml",
        "lab: smollm2-loop-i-am",
        "lab: no-lab",
        6,
        "lab 'no-lab' has no valid",
    ),
    ("bank/selection/chatbot-repeats-one-sentence.yaml", "title: A", "heading: A", 1, "title: Field required"),
    (
        "bank/selection/chatbot-repeats-one-sentence.yaml",
        "facts: [S5, S2]",
        "facts: []",
        5,
        "1 to 3 facts are wanted, got 0",
    ),
    (
        "bank/selection/chatbot-repeats-one-sentence.yaml",
        "title: A",
        "title: A\ntitle: A",
        2,
        "key 'title' is given twice",
    ),
    ("bank/selection/chatbot-repeats-one-sentence.yaml", "title: A", "title: [A", 2, "expected ',' or ']'"),
    ("labs/sky-loop.yaml", "temperature: 0.7", "temperature: -1", 5, "temperature must be between 0 and 100, got -1"),
    ("labs/sky-loop.yaml", "      temperature: 0.0", "      temperature: 1.0", 14, "a solution must meet its goal"),
    ("labs/sky-loop.yaml", "prompt: the sky is", "prompt: the moon is", 4, "unknown word 'moon'"),
    ("labs/sky-loop.yaml", "model: sky", "model: gpt", 3, "model must be one of sky"),
    ("labs/sky-loop.yaml", "  - kind: cure_loop", "  - kind: heal_loop", 16, "goals.1: "),
    (
        "labs/sky-penalty.yaml",
        "  temperature: 0.0",
        "  repetition_penalty: 1.5",
        5,
        "the start must not meet all goals",
    ),
    ("labs/sky-penalty.yaml", "setting: repetition_penalty", "setting: heat", 11, "goals.0."),
    ("labs/sky-loop.yaml", "seeds: [17, 6, 9, 19, 5]", "seeds: []", 1, "the goal cure_loop needs 5 seeds, got 0"),
    ("labs/sky-loop.yaml", "facts: [S2, S3, S4]", "2024-13-45: x", 1, "cannot be read: month must be"),
    ("labs/sky-loop.yaml", "facts: [S2, S3, S4]", "facts: 2024-13-45", 1, "cannot be read: month must be in 1..12"),
    ("labs/sky-loop.yaml", "facts: [S2, S3, S4]", "facts: !!int x", 1, "cannot be read: invalid literal"),
    ("labs/sky-loop.yaml", "facts: [S2, S3, S4]", "? [a]\n: b", 2, "a key must be a word"),
    ("labs/sky-loop.yaml", "facts: [S2, S3, S4]", "facts: &a [*a]", 1, "cannot be read: maximum recursion"),
    (
        "bank/topics.yaml",
        "- slug: cost\n  name: Cost and latency",
        "- slug: cost",
        5,
        "a topic must be a slug and a name",
    ),
]


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize(("name", "old", "new", "line", "message"), BROKEN)
def test_a_broken_file_is_refused_with_its_line_and_nothing_changes(
    folder: Path, name: str, old: str, new: str, line: int, message: str
):
    edit(folder / "bank/cost/long-prompt-short-prompt.yaml", "A retrieval change", "A search change")
    edit(folder / name, old, new)

    with pytest.raises(CommandError) as caught:
        load(folder)

    found = str(caught.value)
    assert f"{folder / name}:{line}: " in found
    assert message in found
    assert QuestionVersion.objects.filter(number=2).count() == 0


def test_a_follow_up_to_nowhere_is_a_mistake(folder: Path):
    edit(
        folder / "bank/selection/chatbot-repeats-one-sentence.yaml",
        "question: penalty-alone-does-not-cure",
        "question: nowhere",
    )

    (mistake,) = read_content(folder).mistakes
    assert mistake.message == "follow_ups.0.question: no question 'nowhere'"


@pytest.mark.real_model  # it proves the labs on it, unless they have been
def test_check_content_names_the_facts_without_a_database(capsys: pytest.CaptureFixture[str]):
    call_command("check_content")

    assert f"{len(CONTENT.questions)} questions and {len(CONTENT.labs)} labs are valid" in capsys.readouterr().out


@pytest.mark.django_db
def test_loading_keeps_a_changed_lab_in_step(folder: Path):
    edit(folder / "labs/sky-loop.yaml", "Bring the loop on, then cure it", "Make it loop, then cure it")

    assert "lab sky-loop: changed" in load(folder)
    assert Lab.objects.get(slug="sky-loop").title == "Make it loop, then cure it"


def test_topics_that_are_no_list_are_a_mistake(folder: Path):
    (folder / "bank/topics.yaml").write_text("slug: cost")

    assert "must hold" in read_content(folder).mistakes[0].message


def test_a_file_name_that_is_no_address_is_a_mistake(folder: Path):
    (folder / "labs/sky-loop.yaml").rename(folder / "labs/Sky loop.yaml")
    (folder / "bank/generation/early-wrong-token.yaml").rename(folder / "bank/generation/early wrong.yaml")

    found = " ".join(mistake.message for mistake in read_content(folder).mistakes)
    assert "small letters, digits and hyphens, got 'Sky loop'" in found
    assert "small letters, digits and hyphens, got 'early wrong'" in found


def test_two_goals_of_a_kind_are_a_mistake(folder: Path):
    file = folder / "labs/sky-loop.yaml"
    goal = "  - kind: reproduce_loop\n    solution: {temperature: 0.0}\n"
    file.write_text(file.read_text().split("goals:")[0] + "goals:\n" + goal * 2)

    assert "goals must be of different kinds, got reproduce_loop twice" in str(read_content(folder).mistakes)


@pytest.mark.django_db
def test_what_was_edited_in_the_admin_is_kept_while_its_file_stays(folder: Path):
    Question.objects.filter(slug="chatbot-repeats-one-sentence").update(status="archived")
    Lab.objects.filter(slug="sky-loop").update(title="Another title")

    assert "nothing changed" in load(folder)
    assert Question.objects.get(slug="chatbot-repeats-one-sentence").status == "archived"
    assert Lab.objects.get(slug="sky-loop").title == "Another title"


@pytest.mark.django_db
def test_what_was_changed_on_both_sides_is_a_conflict_and_nothing_is_overwritten(folder: Path):
    Question.objects.filter(slug="chatbot-repeats-one-sentence").update(status="archived")
    Lab.objects.filter(slug="sky-loop").update(title="Another title")
    edit(folder / "bank/selection/chatbot-repeats-one-sentence.yaml", "A travel chatbot", "A shop’s chatbot")
    edit(folder / "labs/sky-loop.yaml", "title: Bring the loop on", "title: Make it loop")

    out = load(folder)

    assert "question chatbot-repeats-one-sentence: conflict, changed here and in its file" in out
    assert "lab sky-loop: conflict" in out
    assert ": 0 changed" in out
    assert Question.objects.get(slug="chatbot-repeats-one-sentence").versions.count() == 1
    assert Lab.objects.get(slug="sky-loop").title == "Another title"


def test_every_fact_that_a_panel_shows_has_a_lab_with_hints_and_an_explanation():
    assert gaps(CONTENT.labs) == []


def test_what_is_missing_is_named():
    labs = {slug: lab for slug, lab in CONTENT.labs.items() if "M7" not in lab.facts}
    bare = labs["sky-loop"].model_copy(
        update={"hints": labs["sky-loop"].hints[:2], "explanation": "", "facts": ["M99"]}
    )

    missing = gaps(labs | {"sky-loop": bare})

    assert "fact M7: no lab in a panel that shows it (attention)" in missing
    assert "lab sky-loop: 3 hints are wanted, got 2" in missing
    assert "lab sky-loop: no explanation for whoever has solved it" in missing
    assert "lab sky-loop: there is no fact M99" in missing


def test_a_fact_counts_only_in_a_panel_that_shows_it():
    labs = {slug: lab for slug, lab in CONTENT.labs.items() if lab.panel != "intervene"}
    traced = CONTENT.labs["sky-early-token"].model_copy(update={"panel": "trace"})

    assert any("fact M8" in gap for gap in gaps(labs | {"sky-early-token": traced}))


@pytest.mark.parametrize(
    ("hint", "written"),
    [
        ("Try a temperature of 0.4 here, then read.", "0.4"),
        ("Forty percent, or 0.40, will do it nicely.", "0.40"),
    ],
)
def test_a_hint_that_gives_the_solution_away_is_refused(hint: str, written: str):
    data = CONTENT.labs["sky-loop-rate"].model_dump(mode="json") | {"hints": [hint]}

    problems = read_lab(data)

    assert isinstance(problems, list)
    assert problems[0].message == f"a hint must not contain a number of the solution, but one says {written}"


def test_a_hint_that_tells_the_predicted_value_is_refused():
    data = CONTENT.labs["sky-count-passes"].model_dump(mode="json")

    problems = read_lab(data | {"hints": ["Think of 9 tokens in the end."]})

    assert isinstance(problems, list)
    assert "one says 9" in problems[0].message
    assert not isinstance(read_lab(data | {"hints": ["Think of 8 tokens in the end."]}), list)


def test_there_are_labs_enough_and_most_run_on_the_real_model():
    labs = CONTENT.labs.values()

    assert len(labs) >= 30
    assert sum(lab.model == "smollm2" for lab in labs) >= 15
