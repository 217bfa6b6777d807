"""Panels: ways to look at a run, one module and one template each. All of them are named here."""

from quizsite.labs.panels import attention, compare, cost, intervene, latency, stopping, streaming, tokens, trace, truth
from quizsite.labs.panels.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        trace.KIND,
        compare.KIND,
        intervene.KIND,
        tokens.KIND,
        attention.KIND,
        latency.KIND,
        streaming.KIND,
        stopping.KIND,
        cost.KIND,
        truth.KIND,
    )
}
