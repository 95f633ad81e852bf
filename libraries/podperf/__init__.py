"""podperf: how fast a containerized infrastructure forwards packets. Nothing here imports Robot Framework.

Imports run one way, from the top of this list to its end (utest/test_layers.py):

    run                      one run of the suites: its machines, limits and baselines, and the test that runs now
    preflight, cleanup       the commands `check` and `clean`
    report, virtual_worker   reports from records; a worker in QEMU
    methods, records         what turns a tester into a result; the JSON document of one test
    verdicts                 thresholds, claims of the draft, results that others published
    testbed                  machines, ports and CPUs in use: builds the systems under test
    dataplanes               one file a data plane
    pods, testers            what makes pods and forwards in them; what sends and receives test traffic
    kernel, quietness        what a host's kernel offers; what else runs on the measuring CPUs
    hosts                    where a command runs
    topology                 what a topology file says
    documents, progress      YAML held against a schema; what a person sees while a run works
    metrics                  the table of metrics, and a figure of one
    model and the rest       values and text, without I/O; what a terminal can show
"""

__version__ = "0.1.0"
