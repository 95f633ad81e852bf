"""podperf: how fast a containerized infrastructure forwards packets. Nothing here imports Robot Framework.

Imports run one way, from the top of this list to its end (utest/test_layers.py):

    __main__                   `python -m podperf`: the commands that a user types
    run                        one run of the suites: its machines, limits and baselines, and the test that runs now
    cleanup, preflight         the commands `clean` and `check`
    cluster                    a Kubernetes cluster on this machine, and the image of podperf's pods
    counted_machine            the machine in QEMU whose clock counts instructions
    report, virtual_worker     reports from records; a worker in QEMU
    history                    figures of many runs: trends, change points, bounds for thresholds
    methods, records           methods measure a result with a tester; the JSON document of one test
    experiments, thresholds    what is measured by turns: claims, comparisons; limits of figures
    testbed                    machines, ports and CPUs in use: builds the systems under test
    dataplanes                 one file a data plane
    kubernetes                 what is about a user's cluster: its API, pods, tester, settings, checks, and Jobs
    pods, testers              pod runtimes and forwarders; the senders and receivers of test traffic
    kernel, quietness          features of a host's kernel; foreign work on the measuring CPUs
    observation                the result of one check of `podperf check`
    caches                     folders that are made once and kept
    hosts                      the places where a command runs
    topology                   the values of a topology file
    cpu_plan, documents        the CPUs of each role; YAML checked against a schema
    metrics, progress          the table of metrics, and a figure of one; progress of a run, and the time that is left
    third_party                parts that other packages bring
    http_login                 logins of HTTP sessions whose token no log shows; one deadline for a whole request
    model                      the values of a measurement: chains, frames, traffic, trials, latencies
    closed_paths               paths that only root and trusted users can change; reading where others can write
    addressing, cpu_lists      test addresses and MACs; CPU lists as text
    allocation                 what every pod gets of its worker: CPU time, memory, CPUs, descriptors
    figures                    figures as text
    nearness, noise            mistyped and empty names of a user; the amount of foreign work
    ownership, terminal        the owner of result files; the properties of a terminal
    environment                secrets of the environment, which no child process inherits
    errors                     the errors of users
    frames                     the headers of test frames, and what differs from flow to flow
    printable                  text of others, made safe for a terminal, a log and a page
"""

__version__ = "0.1.0"
