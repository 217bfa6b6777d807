"""The goals of a lab: plain Python over recorded runs, never over what a browser posts.

A new goal is one class, named here in `Goal`.
"""

from quizsite.labs.goals.attention import FindHead
from quizsite.labs.goals.comparisons import CureBeside, SameTextBeside
from quizsite.labs.goals.context import ContextKept, ContextLost, Unchanged
from quizsite.labs.goals.cost import CacheChangesCost, ReachRatio
from quizsite.labs.goals.ends import CutOff, EndsBy, EndsByItself
from quizsite.labs.goals.loops import BreaksAnswer, CureLoop, LoopRate, ReproduceLoop, StillLoops
from quizsite.labs.goals.predictions import PREDICTION, PredictedFirst
from quizsite.labs.goals.selection import EarlyWrongToken, ExactlyNSurvive, OrderMatters, SameAsGreedy
from quizsite.labs.goals.tokens import Split
from quizsite.labs.goals.truth import StatedAgainstMeasured

__all__ = [
    "PREDICTION",
    "BreaksAnswer",
    "CacheChangesCost",
    "ContextKept",
    "ContextLost",
    "CureBeside",
    "CureLoop",
    "CutOff",
    "EarlyWrongToken",
    "EndsBy",
    "EndsByItself",
    "ExactlyNSurvive",
    "FindHead",
    "Goal",
    "LoopRate",
    "OrderMatters",
    "PredictedFirst",
    "ReachRatio",
    "ReproduceLoop",
    "SameAsGreedy",
    "SameTextBeside",
    "Split",
    "StatedAgainstMeasured",
    "StillLoops",
    "Unchanged",
]

Goal = (
    ReproduceLoop
    | CureLoop
    | StillLoops
    | LoopRate
    | BreaksAnswer
    | SameAsGreedy
    | EarlyWrongToken
    | CutOff
    | EndsBy
    | EndsByItself
    | OrderMatters
    | ExactlyNSurvive
    | FindHead
    | CacheChangesCost
    | CureBeside
    | SameTextBeside
    | PredictedFirst
    | ReachRatio
    | Split
    | StatedAgainstMeasured
    | ContextLost
    | ContextKept
    | Unchanged
)
