"""podperf: how fast a containerized infrastructure forwards packets. Nothing here imports Robot Framework.

Imports run one way, from the top of this list to its end (utest/test_layers.py):

    run                      one run of the suites: its machines, limits and baselines, and the test that runs now
    preflight, cleanup       the commands `check` and `clean`
    report, virtual_worker   reports from records; a worker in QEMU
    comparisons              comparisons that users write, and their rounds
    methods, records         methods measure a result with a tester; the JSON document of one test
    verdicts                 thresholds, claims of the draft, results that others published
    testbed                  machines, ports and CPUs in use: builds the systems under test
    dataplanes               one file a data plane
    pods, testers            pod runtimes and forwarders; the senders and receivers of test traffic
    kernel, quietness        features of a host's kernel; foreign work on the measuring CPUs
    hosts                    the places where a command runs
    topology                 the values of a topology file
    documents, progress      YAML checked against a schema; the progress that a person sees during a run
    metrics                  the table of metrics, and a figure of one
    model and the rest       values and text, without I/O; the properties of a terminal
"""

__version__ = "0.1.0"
