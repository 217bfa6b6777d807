"""Panels: ways to look at a run, one module and one template each. All of them are named here."""

from quizsite.labs.panels import attention, compare, cost, intervene, latency, tokens, trace
from quizsite.labs.panels.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (trace.KIND, compare.KIND, intervene.KIND, tokens.KIND, attention.KIND, latency.KIND, cost.KIND)
}
