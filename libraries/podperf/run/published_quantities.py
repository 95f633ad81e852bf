"""Measures the quantity of a published table on chains that were compared: the NDR by a search, or the rate of MRR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import Any

from podperf.methods import search_by
from podperf.methods.comparison import Contender as Build
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.metrics import Measured
from podperf.run.contenders import Contenders
from podperf.topology import MethodSettings
from podperf.verdicts.findings import Contender
from podperf.verdicts.published_quantity import PublishedQuantity, beside_published


def quantities_beside(
    rates: Mapping[Contender, Sequence[Measured]],
    builds: Mapping[str, Build],
    contenders: Contenders,
    settings: MethodSettings,
) -> Mapping[str, Any]:
    """Each contender's figure beside the published one, in JSON types. Empty if they are from no published table.

    `rates` are those of the rounds. An NDR is searched once for each contender, with the loss goal of the document;
    its chain is set up again for it. Other quantities are the median of the rounds.
    """
    quantity = next((each.quantity for each in rates), None)
    if quantity is None:
        return {}
    rows, searches = [], {}
    for contender, found in rates.items():
        name, rate, measured_as = str(contender), _median(found), "MRR"
        if quantity.searched_with(contender.frame):
            result = _search(quantity, name, builds[name], contenders, settings)
            searches[name] = result.as_record()
            goal = result.goal("NDR")
            if goal is not None and goal.measured is not None:
                rate, measured_as = goal.measured, "NDR"
        link = contenders.links.get(name)
        row = beside_published(quantity, name, contender.figure, contender.frame, rate, link)
        rows.append({**asdict(row), "frame": row.frame.name, "measured_as": measured_as})
    return {
        "quantity": quantity.name,
        "unit": quantity.unit,
        "frame": quantity.frame.name if quantity.frame else None,
        "loss_ratio": quantity.loss_ratio,
        "sought_loss_ratio": quantity.sought_loss_ratio if searches else None,
        "words": quantity.words,
        "rows": rows,
        "searches": searches,
    }


def _search(
    quantity: PublishedQuantity, name: str, build: Build, contenders: Contenders, settings: MethodSettings
) -> SearchResult:
    limits = contenders.limits[name]
    contenders.test.phase = f"{name}, NDR"
    try:
        with build() as source:
            search = search_by(settings)
            ndr = replace(search.preset.goals[0], name="NDR", loss_ratio=quantity.sought_loss_ratio)
            preset = replace(search.preset, goals=(ndr,)).for_tester(contenders.shortest_trial)
            withheld = {ndr.name: limits.doubt} if limits.cannot_tell(ndr.loss_ratio) else {}
            return NdrPdr(preset, contenders.test.patience.clock, withheld).run(source)
    finally:
        contenders.test.phase = ""


def _median(rates: Sequence[Measured]) -> Measured:
    values = [each.value for each in rates]
    limited = any(each.lower_bound for each in rates)
    return Measured(median(values), min(values), max(values), lower_bound=limited)
