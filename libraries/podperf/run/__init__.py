"""One run of the suites on one testbed: what the keyword libraries share, and nothing of Robot Framework.

Its parts:

    run                                 the tests, one after the other, and the reports at the end
    session, equipment                  the machines, taken and given back; the testbed and the watch on them
    kept: limits, baselines             patience, tester's limits and baselines, which a test leaves to the next
    test_in_progress, identity, ended   the record of one test, its trials and its undoing; its name; its end
    set_up, measurement                 the chain of one test, and the figures that the methods find there
    comparison                          several chains by turns in one test
    expected, interfaces                how long tests may take; the interfaces on a path
"""

from podperf.run.identity import TestIdentity
from podperf.run.run import Run
from podperf.run.session import MachineRole, Session

__all__ = ["MachineRole", "Run", "Session", "TestIdentity"]
