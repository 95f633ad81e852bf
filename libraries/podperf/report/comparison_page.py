"""A comparison of variants as one HTML page: the verdict, the table, the rounds, what was compared and how."""

from __future__ import annotations

from collections.abc import Iterator

import podperf
from podperf.comparisons import Hook
from podperf.comparisons.result import ComparisonOutcome, VariantResult
from podperf.dataplanes import with_forwarder
from podperf.figures import count, percent
from podperf.report import cells
from podperf.report.comparison_words import figure, notes
from podperf.report.html import NOTHING, Content, Html, TableRow, drawing, element, facts, table, together
from podperf.report.page_frame import framed
from podperf.report.rounds_plot import changes_plot, figures_plot
from podperf.verdicts.ratio_interval import CONFIDENCE


def comparison_page(result: ComparisonOutcome) -> str:
    """The whole page."""
    return framed(f"Before and after: {result.comparison.name}", *_body(result))


def _body(result: ComparisonOutcome) -> Iterator[Html]:
    yield element("h1", f"Before and after: {result.comparison.name}")
    if result.comparison.description:
        yield element("p", result.comparison.description)
    unit = cells.typeset(result.metric.quantity.unit)
    heads = ("Variant", f"{result.metric.label}, {unit}", "Change", "Verdict")
    yield table(heads, (_row(each, result) for each in result.variants), numeric=(1,)) or element(
        "p", "Nothing was measured."
    )
    for each in notes(result):
        yield element("p", each, class_="muted")
    plots = [] if result.exact else [changes_plot(result), figures_plot(result)]
    if any(plots):
        yield element("h2", "Round by round")
        yield element("p", _how_to_read(result), class_="muted")
        yield from (element("div", drawing(each), class_="scroll") for each in plots if each)
    if result.looked:
        yield element("h2", "Looks")
        yield _looks(result)
    yield element("h2", "What was compared")
    for variant in result.variants:
        yield _variant(variant)
    yield element("footer", f"podperf {podperf.__version__}. {_method(result)}")


def _row(each: VariantResult, result: ComparisonOutcome) -> TableRow:
    judged = each.judgement
    change = judged.change.words if judged and judged.change else "-"
    verdict = (
        together(cells.state(judged.verdict), f" {judged.words}")
        if judged and judged.words != judged.verdict
        else (cells.state(judged.verdict) if judged else NOTHING)
    )
    return TableRow((each.variant.name, figure(each, result.metric), change, verdict))


def _how_to_read(result: ComparisonOutcome) -> str:
    return (
        "A hollow dot is the change of one round, a thin line the estimate from all rounds so far, and a bar the "
        f"interval at a look. A bar within the grey band is no change larger than the {percent(result.relevant)} that "
        "count. A bar outside of the band is a change that counts. A bar across an edge of it decides nothing yet."
    )


def _looks(result: ComparisonOutcome) -> Html:
    rows = (
        TableRow(
            (
                each.variant,
                str(each.look.rounds),
                each.judgement.change.words if each.judgement.change else "-",
                percent(1 - each.look.error),
                each.judgement.words,
            )
        )
        for each in result.looked
    )
    return table(("Variant", "After rounds", "Change", "Confidence of this look", "Verdict"), rows, numeric=(1,))


def _variant(each: VariantResult) -> Html:
    variant = each.variant
    found: list[tuple[str, Content]] = [
        ("Chain", str(with_forwarder(variant.chain))),
        ("Testbed", each.topology),
        ("Record", f"records/{each.record}.json"),
        ("Figures", f"{len(each.measured)}{f', {each.noisy} on a noisy machine' if each.noisy else ''}"),
    ]
    if str(variant.placement):
        found.insert(1, ("Placement", str(variant.placement)))
    hooks = [_hook(hook) for hook in variant.hooks]
    return together(element("h3", variant.name), facts(found), *hooks)


def _hook(hook: Hook) -> Html:
    undo = [element("p", "Undo:"), element("pre", hook.undo.rstrip())] if hook.undo is not None else []
    where = f"{hook.moment[0].upper()}{hook.moment[1:]}, in {hook.place}:"
    return together(element("p", where), element("pre", hook.run.rstrip()), *undo)


def _method(result: ComparisonOutcome) -> str:
    if result.exact:
        return "A counted machine repeats a figure, so that one figure of each variant is enough."
    rounds = count(max((len(each.figures) for each in result.variants), default=0), "round")
    return (
        f"{rounds}, the order within each drawn by lot (seed {result.seed}). Intervals invert Wilcoxon's signed-rank "
        "test. "
        f"The errors of all looks add up to {percent(1 - CONFIDENCE)} at most."
    )
