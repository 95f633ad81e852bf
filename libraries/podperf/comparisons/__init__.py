"""Comparisons that users write: variants of a chain in a YAML file. docs/compare.md explains the file."""

from podperf.comparisons.reading import COMPARISON_SCHEMA, ComparisonError, comparison_schema, load_comparison
from podperf.comparisons.result import ComparisonOutcome
from podperf.comparisons.values import Hook, Moment, Variant, VariantComparison, VariantPlacement

__all__ = [
    "COMPARISON_SCHEMA",
    "ComparisonError",
    "ComparisonOutcome",
    "Hook",
    "Moment",
    "Variant",
    "VariantComparison",
    "VariantPlacement",
    "comparison_schema",
    "load_comparison",
]
