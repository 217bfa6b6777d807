"""The goals of a lab: plain Python over recorded runs, never over what a browser posts.

A new goal is one class, named here in `Goal`.
"""

from quizsite.labs.goals.attention import FindHead
from quizsite.labs.goals.comparisons import CureBeside, SameTextBeside
from quizsite.labs.goals.cost import CacheChangesCost, ReachRatio
from quizsite.labs.goals.ends import CutOff, EndsByItself
from quizsite.labs.goals.loops import BreaksAnswer, CureLoop, ReproduceLoop, StillLoops
from quizsite.labs.goals.predictions import PREDICTION, PredictedFirst
from quizsite.labs.goals.selection import EarlyWrongToken, ExactlyNSurvive, OrderMatters, SameAsGreedy
from quizsite.labs.goals.tokens import Split

__all__ = [
    "PREDICTION",
    "BreaksAnswer",
    "CacheChangesCost",
    "CureBeside",
    "CureLoop",
    "CutOff",
    "EarlyWrongToken",
    "EndsByItself",
    "ExactlyNSurvive",
    "FindHead",
    "Goal",
    "OrderMatters",
    "PredictedFirst",
    "ReachRatio",
    "ReproduceLoop",
    "SameAsGreedy",
    "SameTextBeside",
    "Split",
    "StillLoops",
]

Goal = (
    ReproduceLoop
    | CureLoop
    | StillLoops
    | BreaksAnswer
    | SameAsGreedy
    | EarlyWrongToken
    | CutOff
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
)
