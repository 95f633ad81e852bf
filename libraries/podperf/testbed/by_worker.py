"""The form in which records have facts of several workers (docs/records.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

FURTHER = "further_workers"

Fact = TypeVar("Fact")


def keys_as_record(by_worker: Mapping[str, Mapping[str, Fact]]) -> dict[str, Fact]:
    """The facts of all workers. The key of a fact of the next workers begins with the worker's name."""
    (_, first), *others = by_worker.items()
    return {**first, **{f"{name}: {key}": fact for name, facts in others for key, fact in facts.items()}}


def as_record(by_worker: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of the first worker, and under `further_workers` those of the next workers by their names."""
    (_, first), *others = by_worker.items()
    return {**first, **({FURTHER: dict(others)} if others else {})}
