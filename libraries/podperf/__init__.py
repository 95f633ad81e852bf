"""podperf: how fast a containerized infrastructure forwards packets. Nothing here imports Robot Framework.

Imports run one way, from the top of this list to its end (utest/test_layers.py):

    __main__                   `python -m podperf`: the commands that a user types
    run                        one run of the suites: its machines, limits and baselines, and the test that runs now
    cleanup, preflight         the commands `clean` and `check`
    cluster                    a Kubernetes cluster on this machine, and the image of podperf's pods
    counted_machine            the machine in QEMU whose clock counts instructions
    report, virtual_worker     reports from records; a worker in QEMU
    history                    figures of many runs: trends, change points, bounds for thresholds
    comparisons                comparisons that users write, and their rounds
    methods, records           methods measure a result with a tester; the JSON document of one test
    verdicts                   thresholds, claims of the draft, results that others published
    testbed                    machines, ports and CPUs in use: builds the systems under test
    dataplanes                 one file a data plane
    pods, testers              pod runtimes and forwarders; the senders and receivers of test traffic
    kernel, quietness          features of a host's kernel; foreign work on the measuring CPUs
    kubernetes                 the API of a cluster, and the objects of a run there
    caches                     folders that are made once and kept
    hosts                      the places where a command runs
    topology                   the values of a topology file
    cpu_plan, documents        the CPUs of each role; YAML checked against a schema
    metrics, progress          the table of metrics, and a figure of one; the progress that a person sees during a run
    third_party                parts that other packages bring
    http_login                 logins of HTTP sessions whose token no log shows
    model                      the values of a measurement: chains, frames, traffic, trials, latencies
    addressing, cpu_lists      test addresses and MACs; CPU lists as text
    allocation                 what every pod gets of its worker: CPU time, memory, CPUs, descriptors
    cpu_time                   the CPU time that a system under test took
    errors, figures, forecast  the errors of users; figures as text; the time that a run still takes
    nearness, noise            the known names next to a mistyped one; the amount of foreign work
    ownership, terminal        the owner of result files; the properties of a terminal
    regular_files              files where other users can write, read without waiting
    printable                  text of others, made safe for a terminal, a log and a page
"""

__version__ = "0.1.0"
