"""One run of the suites on one testbed. The keyword libraries share it. It uses nothing of Robot Framework.

Its parts:

    run                                 the tests, one after the other; the reports at the end
    session                             takes the machines and gives them back; the testbed, and the watch over noise
    test                                the record, trials and undo steps of one test; its name and its end
    measurement                         sets up the chain of one test, and has the figures of its methods
    limits, cost                        the tester's limits, the figures of the bare path; the cost on a counted machine
    experiment, contenders              several chains by turns in one test, for a claim or a comparison; their set-ups
"""

from podperf.run.run import Run
from podperf.run.session import MachineRole, Session
from podperf.run.test import TestIdentity

__all__ = ["MachineRole", "Run", "Session", "TestIdentity"]
