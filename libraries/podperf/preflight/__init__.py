"""The preflight, `podperf check`: it finds the tests that a testbed can run, and the commands of a run there."""
