"""Panels: ways to look at a run, one module and one template each. All of them are named here."""

from quizsite.labs.panels import (
    attention,
    chat,
    compare,
    cost,
    intervene,
    latency,
    stopping,
    streaming,
    tokens,
    trace,
    truth,
    weights,
)
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
        chat.KIND,
        cost.KIND,
        weights.KIND,
        truth.KIND,
    )
}
