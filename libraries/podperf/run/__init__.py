"""One run of the suites on one testbed. The keyword libraries share it. It uses nothing of Robot Framework.

Its parts:

    run, test_sequence, ending          the tests, one after the other; the reports at the end
    session, booting                    takes the machines and gives them back; boots those that the run makes
    equipment                           the testbed and the watch over noise
    kept: limits, baselines             patience, tester's limits and baselines, which a test leaves to the next
    test_in_progress, identity, ended   the record, trials and undo steps of one test; its name; its end
    set_up, measurement                 the chain of one test, and the figures of its methods
    further_methods                     the methods beside MRR and the search
    instances, soaking                  those that build the chain anew, or take hours
    by_method                           each method by its name
    comparison, contenders              several chains by turns in one test
    variant_chains, hooks               the set-ups of a user's comparison
    variant_rounds, variant_costs       their figures, by turns or on a counted machine
    comparing                           the command `compare`
    expected, interfaces                how long tests may take; the interfaces on a path
"""

from podperf.run.further_methods import FurtherMethods
from podperf.run.identity import TestIdentity
from podperf.run.instances import repeat_instantiation
from podperf.run.run import Run
from podperf.run.session import MachineRole, Session
from podperf.run.soaking import soak

__all__ = ["FurtherMethods", "MachineRole", "Run", "Session", "TestIdentity", "repeat_instantiation", "soak"]
