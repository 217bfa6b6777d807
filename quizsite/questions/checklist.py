"""What an author should look at before publishing, though it is no error."""

from quizsite.questions.validation import QuestionSpec

MOST_SAID = 170  # words that one says in 60 seconds
LONG_TEXT = 45  # words; the validator refuses from 60 on
FEW_WORDS = 4  # a reason of fewer explains nothing
MUCH_LONGER = 1.3  # times the longest distractor


def warnings(spec: QuestionSpec) -> list[str]:
    """Say what may give the answer away, or leave a learner without one."""
    found = []
    if spec.level == "scenario" and not spec.lab:
        found.append("A scenario without a lab: the learner cannot prove the answer.")
    if len(spec.text.split()) > LONG_TEXT:
        found.append(f"The question has {len(spec.text.split())} words. An interviewer says it in {LONG_TEXT}.")
    if len(spec.answer.split()) > MOST_SAID:
        found.append(f"The answer has {len(spec.answer.split())} words. In 60 seconds one says {MOST_SAID}.")
    if not any(follow_up.question for follow_up in spec.follow_ups):
        found.append("No follow-up leads to a question that answers it.")
    return found + _of_options(spec)


def _of_options(spec: QuestionSpec) -> list[str]:
    right = [len(option.text) for option in spec.options if option.right]
    wrong = [len(option.text) for option in spec.options if not option.right]
    found = []
    if right and wrong and min(right) > MUCH_LONGER * max(wrong):
        found.append("The right option is the longest by far. Its length gives it away.")
    for number, option in enumerate(spec.options, start=1):
        if option.why and len(option.why.split()) < FEW_WORDS:
            found.append(f"Option {number}: its reason has {len(option.why.split())} words.")
    return found
