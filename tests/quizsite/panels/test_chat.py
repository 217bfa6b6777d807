"""Chat: what is sent at each turn against counts by hand, the window, compaction, and how a conversation goes on."""

import json
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from generation import PromptError, SamplingParams
from quizsite.labs.clauses import Chat, Inputs, Run, Setup, Verdict
from quizsite.labs.frame import finished_html
from quizsite.labs.goals import ContextKept, ContextLost, ReachRatio
from quizsite.labs.models import Lab
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.chat import KIND, EarlierField, Turn, after, asked, next_inputs, turns_of, view
from quizsite.labs.panels.kind import Shown
from quizsite.labs.validation import read_inputs, read_lab, run_here
from tests.quizsite.pages import HTMX, field

ASSISTANT = 11  # tokens that open the assistant's turn: a control token, nine letters, a line end
USER, ANSWER, SYSTEM = 8, 13, 10  # tokens around a message: the role, two control tokens, two line ends


def talk(*contents: str) -> Chat:
    """Return messages of user and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": content} for n, content in enumerate(contents)]


def inputs_of(*earlier: str, **changes: Any) -> Inputs:
    return read_inputs(KIND, {"message": "dddd", "earlier": talk(*earlier)}, changes)


def setup_of(model: str) -> Setup:
    return Setup(model, "", SamplingParams(max_new_tokens=4))


def contents(setup: Setup) -> list[str]:
    return [message["content"] for message in setup.chat]


def shown_by(model: str, inputs: Inputs, is_open: bool = False) -> Shown:
    setup = asked(setup_of(model), inputs)
    made = run_here(setup, {})
    if is_open:
        return Shown(setup, made.steps[:2], None, "", inputs, {})
    return Shown(setup, made.steps, made, made.finish_reason, inputs, after(setup, inputs, made, Bench(run_here)))


def test_the_first_turn_sends_its_message_and_all_of_it_is_new(tiny: str):
    assert turns_of(tiny, inputs_of()) == [Turn(sent=USER + 4 + ASSISTANT, new=USER + 4 + ASSISTANT, plain=23)]


def test_each_turn_sends_all_again_and_only_its_message_is_new(tiny: str):
    turns = turns_of(tiny, inputs_of("aa", "bbb"))

    answered = USER + 2 + ANSWER + 3  # the assistant's turn is opened with 11 tokens of the 13
    assert turns[0] == Turn(USER + 2 + ASSISTANT, USER + 2 + ASSISTANT, USER + 2 + ASSISTANT)
    assert turns[1].sent == turns[1].plain == answered + USER + 4 + ASSISTANT
    assert turns[1].new == USER + 4 + ASSISTANT


def test_the_sums_of_a_conversation_and_what_a_prefix_cache_computes(tiny: str):
    def outcome(**changes: Any) -> dict[str, Any]:
        inputs = inputs_of("aa", "bbb", **changes)
        return after(asked(setup_of(tiny), inputs), inputs, None, Bench(run_here))

    plain, cached = outcome(), outcome(cache=True)
    first, second, new = 21, 49, 23
    assert (plain["n_sent"], plain["n_new"]) == (second, new)
    assert (plain["total_sent"], plain["total_new"], plain["total_plain"]) == (first + second, first + new, 70)
    assert (plain["total_computed"], cached["total_computed"]) == (first + second, first + new)
    assert plain["times_first"] == 2
    assert cached["total_sent"] == plain["total_sent"]


def test_a_turn_that_drops_the_oldest_has_little_in_common_with_the_one_before(tiny: str):
    turns = turns_of(tiny, inputs_of("aa", "bbb", window=48))

    assert turns[1].sent == USER + 4 + ASSISTANT
    assert turns[1].new == turns[1].sent - len("<") - len("user\n")  # a control token, the role and its line end


@pytest.mark.parametrize(
    ("window", "sent"),
    [
        (1000, ["S", "a", "b", "c", "d", "dddd"]),
        (87 + 23 + 23, ["S", "a", "b", "c", "d", "dddd"]),
        (87 + 23 + 22, ["S", "c", "d", "dddd"]),
        (87 + 23, ["S", "c", "d", "dddd"]),
        (87 + 22, ["S", "dddd"]),
        (87, ["S", "dddd"]),
        (86, ["dddd"]),
    ],
)
def test_whole_turns_fall_out_the_oldest_first_and_the_system_message_last(tiny: str, window: int, sent: list[str]):
    inputs = inputs_of("a", "b", "c", "d", system="S" * 54, window=window)  # 64 tokens; the message has 23, a turn 23

    assert contents(asked(setup_of(tiny), inputs)) == [text.replace("S", "S" * 54) for text in sent]


def test_a_message_longer_than_the_window_is_refused_with_both_counts(tiny: str):
    with pytest.raises(PromptError, match="the message alone has 69 tokens .* and the window holds 68"):
        asked(setup_of(tiny), inputs_of(message="d" * 50, window=68))


def test_a_turn_that_would_not_have_fitted_sends_nothing(tiny: str):
    turns = turns_of(tiny, inputs_of("a" * 50, "b", window=60))

    assert turns[0] == Turn(0, 0, USER + 50 + ASSISTANT)
    assert turns[1].sent == turns[1].new == USER + 4 + ASSISTANT


def test_compaction_keeps_two_turns_and_ten_words_of_each_older_message(tiny: str):
    long = "one two three four five six seven eight nine ten eleven"
    inputs = inputs_of(long, "b", "c", "d", "e", "f", "g", "h", compaction=True, system="Be kind.")

    setup = asked(setup_of(tiny), inputs)

    summary = "Earlier the user said: one two three four five six seven eight nine ten / c"
    assert contents(setup) == [f"Be kind.\n{summary}", "e", "f", "g", "h", "dddd"]


def test_compaction_leaves_a_short_conversation_as_it_is(tiny: str):
    assert contents(asked(setup_of(tiny), inputs_of("a", "b", "c", "d", compaction=True))) == [
        "a",
        "b",
        "c",
        "d",
        "dddd",
    ]


def test_what_fell_out_and_what_was_shortened_is_said(tiny: str):
    def fates(inputs: Inputs) -> list[tuple[str, str]]:
        return [(said.text, said.fate) for said in view(shown_by(tiny, inputs)).said]

    whole = ("a", "b", "c", "d", "e", "f")
    assert [fate for _, fate in fates(inputs_of(*whole))] == [""] * 7
    assert fates(inputs_of(*whole, window=68)) == [
        *((text, "fell out") for text in "abcd"),
        *((text, "") for text in ("e", "f", "dddd")),
    ]
    assert fates(inputs_of(*whole, compaction=True))[:4] == [
        ("Earlier the user said: a", ""),
        ("a", "shortened"),
        ("b", "fell out"),
        ("c", ""),
    ]
    assert fates(inputs_of(system="S" * 40, window=40)) == [("S" * 40, "fell out"), ("dddd", "")]


def test_what_is_sent_is_shown_with_its_control_tokens_and_what_of_it_is_new(tiny: str):
    shown = view(shown_by(tiny, inputs_of("aa", "bbb")))

    tokens = [pair for line in shown.sent for pair in line]
    assert shown.n_sent == len(tokens) == 49
    assert [token.text for token, _ in tokens if token.is_control] == ["<start>", "<end>"] * 3 + ["<start>"]
    assert [is_new for _, is_new in tokens] == [False] * 26 + [True] * 23
    assert [line[0][0].text for line in shown.sent][:3] == ["<start>", "a", "<start>"]


def test_the_chart_has_a_line_for_what_the_switches_change(tiny: str):
    def lines(inputs: Inputs) -> dict[str, list[float | None]]:
        chart = view(shown_by(tiny, inputs)).chart
        assert chart
        return {line.name: list(line.values) for line in chart.series}

    assert lines(inputs_of("aa", "bbb")) == {"all sent again": [21, 49], "new": [21, 23]}
    assert lines(inputs_of("aa", "bbb", window=48)) == {
        "all sent again": [21, 49],
        "sent here": [21, 23],
        "new": [21, 17],
    }
    assert view(shown_by(tiny, inputs_of())).chart is None


def test_an_open_a_stopped_and_an_uncounted_turn_are_shown_as_far_as_they_go(tiny: str):
    going_on = shown_by(tiny, inputs_of(), is_open=True)
    stopped = replace(going_on, steps=(), finish_reason="cancelled")
    uncounted = replace(shown_by(tiny, inputs_of()), outcome={"problem": "the model has gone"})

    assert view(going_on).is_open
    assert len(view(going_on).answer) == 2
    assert view(stopped).answer == []
    for shown in (going_on, stopped, uncounted):
        assert (view(shown).turn, view(shown).counters, view(shown).chart) == (None, [], None)
    assert view(uncounted).problem == "the model has gone"


def test_the_next_turn_carries_message_and_answer(tiny: str):
    shown = shown_by(tiny, inputs_of("aa", "bbb"))

    offered = next_inputs(shown)

    assert shown.generation
    assert offered == {"earlier": talk("aa", "bbb", "dddd", shown.generation.text), "message": ""}
    assert read_inputs(KIND, shown.inputs, offered | {"message": "e"})["earlier"] == offered["earlier"]


BAD_TALKS = [
    ("{", "The conversation so far must be JSON."),
    ("[" * 100_000, "The conversation so far must be JSON."),
    ('{"role": "user"}', "a list of messages, each with its answer"),
    (talk("a"), "a list of messages, each with its answer"),
    (talk(*"a" * 42), "at most 21 turns"),
    (talk("a", "b")[::-1], "user and assistant in turn"),
    ([{"role": "user", "content": "a", "name": "x"}, *talk("a", "b")[1:]], "a role and a content"),
    ([{"role": "system", "content": "a"}, *talk("a", "b")[1:]], "user and assistant in turn"),
    ([1, 2], "a role and a content"),
    (talk("a" * 2001, "b"), "text of at most 2,000 letters"),
    (talk("a\0", "b"), "text of at most 2,000 letters"),
    (talk("a\ud800", "b"), "text of at most 2,000 letters"),
    ([{"role": "user", "content": 5}, *talk("a", "b")[1:]], "text of at most 2,000 letters"),
    (talk(*["a" * 2000] * 12), "at most 20,000 letters here, this one 24,000"),
]


@pytest.mark.parametrize(("value", "message"), BAD_TALKS)
def test_a_conversation_that_nobody_can_have_had_is_refused(value: object, message: str):
    for given in (value, json.dumps(value) if not isinstance(value, str) else value):
        with pytest.raises(ValidationError, match=message):
            EarlierField(required=False).clean(given)


@pytest.mark.parametrize("value", ["", None, "[]", []])
def test_a_conversation_can_begin(value: object):
    assert EarlierField(required=False).clean(value) == []


def test_a_model_without_a_template_is_refused_in_words():
    with pytest.raises(PromptError, match="sky has no chat template: it continues a text"):
        asked(setup_of("sky"), inputs_of())


def test_a_lab_that_gives_a_chat_beside_the_conversation_is_refused():
    with pytest.raises(PromptError, match="as the input earlier, not as chat"):
        asked(replace(setup_of("sky"), chat=talk("a")), inputs_of())


SENT = {"earlier": talk("Write in Spanish.", "Yes.", "b", "c"), "message": "dddd"}
LOST = ContextLost(constraint="in Spanish", says="hola")
KEPT = ContextKept(constraint="in Spanish", says="hola", max_sent=120)


def judged(
    goal: ContextLost | ContextKept | ReachRatio,
    tiny: str,
    text: str,
    changes: Inputs,
    allowed: tuple[str, ...] = ("window",),
) -> Verdict:
    """Judge a goal over a turn that was answered with a text."""
    start = read_inputs(KIND, SENT, {})
    inputs = read_inputs(KIND, SENT, changes)
    setup = asked(setup_of(tiny), inputs)
    made = replace(run_here(setup, {}), text=text)
    outcome = after(setup, inputs, made, Bench(run_here))
    return goal.judge(
        Run(
            start=asked(setup_of(tiny), inputs),
            setup=setup,
            made=made,
            allowed=allowed,
            seeds=(),
            generate=lambda wanted: [],
            start_inputs=start,
            inputs=inputs,
            outcome=outcome,
        )
    )


def failing(verdict: Verdict) -> list[str]:
    return [clause.name for clause in verdict.failing]


def test_what_fell_out_is_lost_where_the_answer_shows_it(tiny: str):
    assert judged(LOST, tiny, "Hello.", {"window": 60}).is_met
    assert failing(judged(LOST, tiny, "Hello.", {})) == ["“in Spanish” is not sent"]
    assert failing(judged(LOST, tiny, "¡Hola!", {"window": 60})) == ["The answer does not say “hola”"]


def test_what_is_sent_again_is_kept_where_the_answer_follows(tiny: str):
    assert judged(KEPT, tiny, "¡Hola!", {"window": 110}).is_met
    assert failing(judged(KEPT, tiny, "Hello.", {})) == ["The answer must say “hola”"]
    assert failing(judged(KEPT, tiny, "¡Hola!", {"window": 60})) == ["“in Spanish” is sent"]
    assert failing(judged(replace(KEPT, max_sent=60), tiny, "¡Hola!", {})) == ["Tokens sent, at most 60"]


def test_a_length_can_be_what_is_obeyed(tiny: str):
    goal = ContextKept(constraint="in Spanish", max_words=1)

    assert judged(goal, tiny, " Sí. ", {}).is_met
    assert failing(judged(goal, tiny, "Sí, sí.", {})) == ["The answer must have at most 1 word"]


def test_nothing_is_lost_by_another_question_another_conversation_or_a_locked_setting(tiny: str):
    everything = ("window", "message", "earlier")

    other_question = judged(LOST, tiny, "Hello.", {"window": 60, "message": "e"}, everything)
    rewritten = judged(LOST, tiny, "Hello.", {"earlier": talk("Write.", "Yes.", "b", "c")}, everything)
    goes_on = judged(LOST, tiny, "Hello.", {"window": 60, "earlier": [*SENT["earlier"], *talk("e", "f")]}, everything)
    locked = judged(LOST, tiny, "Hello.", {"window": 60}, ())

    assert failing(other_question) == ["The question of the start"]
    assert failing(rewritten) == ["The conversation of the start"]
    assert goes_on.is_met
    assert failing(locked) == ["Only unlocked settings changed"]


def test_the_models_own_words_do_not_send_the_constraint(tiny: str):
    earlier = [*SENT["earlier"], *talk("e", "In Spanish, yes.")]

    verdict = judged(KEPT, tiny, "¡Hola!", {"window": 68, "earlier": earlier}, ("window", "earlier"))

    assert failing(verdict) == ["“in Spanish” is sent"]


def test_a_long_conversation_reaches_a_ratio_and_the_cache_does_not_shorten_it(tiny: str):
    goal = ReachRatio(
        over="total_sent", under="total_new", over_words="all that is sent", under_words="what is new", at_least=2
    )

    long = judged(goal, tiny, "", {"earlier": talk(*"abcdefgh")}, ("earlier",))
    short = judged(goal, tiny, "", {"earlier": [], "cache": True}, ("earlier", "cache"))

    assert long.is_met
    assert short.failing[0].value == "1.00, short by 1.00"


def test_a_lab_starts_its_conversation_from_the_input():
    data = {
        "title": "A lab",
        "panel": "chat",
        "facts": ["X4"],
        "model": "smollm2",
        "inputs": SENT,
        "allowed": ["window"],
        "goals": [{"kind": "context_lost", "constraint": "Spanish", "says": "hola"}],
    }

    spec = read_lab(data)
    refused = read_lab(data | {"inputs": {"earlier": talk("a")}})

    assert not isinstance(spec, list)
    assert spec.start_inputs["earlier"] == SENT["earlier"]
    assert isinstance(refused, list)
    assert "each with its answer" in refused[0].message


@pytest.mark.django_db
def test_the_toy_is_refused_in_the_open_lab(client: Client):
    data = {"do": "run", "model": "sky", "message": "Hello.", "window": "1000"}

    assert client.get("/lab/panel/chat/").status_code == 200
    response = client.post("/lab/panel/chat/", data, **HTMX)

    assert response.status_code == 422
    assert "sky has no chat template: it continues a text, it holds no conversation" in response.content.decode()
    assert not StoredRun.objects.exists()


OPEN = {"do": "run", "model": "tiny", "window": "1000", "max_new_tokens": "4"}


@pytest.mark.django_db
def test_a_conversation_goes_on_from_answer_to_message(client: Client, tiny: str):
    client.post("/lab/panel/chat/", OPEN | {"model": tiny, "message": "<script>"})
    html = client.get("/lab/panel/chat/").content.decode()
    client.post("/lab/panel/chat/", OPEN | {"message": "Again.", "earlier": field(html, "earlier")})

    second, first = StoredRun.objects.with_recording().order_by("-created")
    made, again = first.recording.generation, second.recording.generation
    assert made
    assert again
    assert second.outcome
    assert [message["content"] for message in second.recording.chat] == ["<script>", made.text, "Again."]
    assert second.outcome["n_sent"] == len(again.prompt_ids)
    assert "<script>" not in html.replace("<script ", "")
    assert 'name="message" value' not in html
    assert len(json.loads(field(client.get("/lab/panel/chat/").content.decode(), "earlier"))) == 4


@pytest.mark.django_db
def test_the_last_event_of_a_run_offers_the_next_message_and_a_stopped_run_does_not(client: Client, tiny: str):
    client.post("/lab/panel/chat/", OPEN | {"model": tiny, "message": "Hello."})
    run = StoredRun.objects.with_recording().get()
    last = finished_html(run, run.learner, whole=True)
    run.outcome = None
    too_early = finished_html(run, run.learner, whole=False)
    StoredRun.objects.update(finish_reason="", outcome=None)
    run = StoredRun.objects.with_recording().get()
    run.close("cancelled", 1)
    stopped = finished_html(run, run.learner, whole=True)

    assert '<div class="setup" id="lab-inputs" hx-swap-oob="true">' in last
    assert "Hello." in unescape(field(last, "earlier"))
    assert 'id="lab-inputs"' not in too_early
    assert 'id="lab-inputs"' not in stopped


@pytest.mark.django_db
def test_a_tampered_conversation_is_told_what_is_wrong(client: Client, tiny: str):
    response = client.post("/lab/panel/chat/", OPEN | {"model": tiny, "message": "a", "earlier": '[{"a": 1}]'}, **HTMX)

    assert response.status_code == 422
    assert "must be a list of messages, each with its answer" in response.content.decode()


@pytest.mark.django_db
def test_a_locked_conversation_is_shown_cannot_be_posted_and_stays_where_it_is(client: Client, tiny: str):
    lab = Lab.objects.create(
        slug="kept",
        title="Kept",
        panel="chat",
        facts=["X4"],
        model=tiny,
        start={"max_new_tokens": 4},
        inputs=SENT,
        allowed=["window"],
        goals=[{"kind": "context_lost", "constraint": "in Spanish", "says": "hola"}],
    )
    before = client.get(lab.get_absolute_url()).content.decode()

    client.post(lab.get_absolute_url(), {"do": "run", "window": "60", "earlier": "[]", "message": "x"})

    run = StoredRun.objects.with_recording().get()
    html = client.get(lab.get_absolute_url()).content.decode()
    assert "Write in Spanish." in before.split('class="turns"')[1]
    assert run.inputs["earlier"] == SENT["earlier"]
    assert [message["content"] for message in run.recording.chat] == ["b", "c", "dddd"]
    assert json.loads(field(html, "earlier")) == SENT["earlier"]
    assert html.count(">fell out</span>") == 2
    assert run.verdicts["context_lost"]["clauses"][0]["met"] is True
