"""The preflight, `podperf check`: what can be measured on a testbed, and what a run would do there."""
