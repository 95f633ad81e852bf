"""The sections of the draft's successor, and the tests and parameters that belong to each. Data only.

The work on draft-dcn-bmwg-containerized-infra-10 went on as draft-ietf-bmwg-containerized-infra. Version 08 has the
networking models in 5.1 and the configuration of resources in 5.2.
"""

from __future__ import annotations

from podperf.records.parameters import PARAMETERS
from podperf.report.draft import SECTIONS as FORMER_SECTIONS
from podperf.report.draft import Section

NAME = "draft-ietf-bmwg-containerized-infra-08"
URL = f"https://datatracker.ietf.org/doc/html/{NAME}"
NOTE = (
    "The words for the subject of a section are podperf's. The text of this draft was not at hand when they were "
    "chosen, so the subjects of 5.2.6 and 5.2.7 are an assumption. Each record has every parameter, whatever its "
    "section."
)


def _section(
    number: str,
    title: str,
    asks: str,
    *tags: str,
    parameters: tuple[str, ...] = (),
    suites: tuple[str, ...] = (),
) -> Section:
    """A section whose tests have one of these tags. `suites` has the suites that no former section with a tag names."""
    former = [former_section for former_section in FORMER_SECTIONS if former_section.tag in tags]
    covered = f"Tests of {', '.join(each.number for each in former)}." if former else ""
    stated = f" Parameters: {', '.join(PARAMETERS[parameter].label for parameter in parameters)}." if parameters else ""
    named = dict.fromkeys([suite for each in former for suite in each.suites] + list(suites))
    return Section(number, title, f"{asks}{stated}", covered, tuple(named), tags=tags)


SECTIONS = (
    _section("5.1", "Networking models", "The way from NIC to pod.", "sec-4.1"),
    _section("5.1.1", "Models without acceleration", "Every frame crosses the kernel.", "sec-4.1.1"),
    _section(
        "5.1.2",
        "Models with acceleration",
        "User space; eBPF, at the tc hook or at the XDP hook; Smart-NIC; combinations.",
        *("sec-4.1.2", "sec-4.1.3", "sec-4.1.4", "sec-4.1.5"),
    ),
    _section("5.2", "Configuration of resources", "Placement of CPU, memory and pages.", "sec-4.2"),
    _section(
        "5.2.1",
        "CPU isolation, NUMA affinity",
        "CPUs of pods and vSwitch, and their NUMA nodes.",
        "sec-4.2.1",
        parameters=("cpu_isolation", "numa_of_pods", "numa_of_switch", "numa_of_nic"),
    ),
    _section("5.2.2", "Hugepages of pods", "Size of pages.", "sec-4.2.2", parameters=("hugepage_size",)),
    _section(
        "5.2.3",
        "CPU cores and memory of pods",
        "What each pod has.",
        "sec-4.2.3",
        parameters=("cores_of_pod", "memory_of_pod"),
    ),
    _section(
        "5.2.4",
        "Configuration of AF_XDP",
        "Busy polling, and the CPUs without it.",
        *("af-xdp", "af-xdp-busy-poll", "ovs-afxdp"),
        parameters=("af_xdp_busy_polling",),
        suites=(
            "4.1.3_ebpf.robot",
            "4.1.3_ebpf_sweep.robot",
            "4.1_headers_sweep.robot",
            "4.1_ends.robot",
            "4.1_findings.robot",
            "4.2.1_cpu_isolation_numa.robot",
            "4.2.2_hugepages.robot",
            "4.2.3_cpu_memory.robot",
            "4.2.4_service_function_chains.robot",
            "4.2_methods.robot",
        ),
    ),
    _section(
        "5.2.5",
        "Service function chaining",
        "Number of functions, composition and scheduling of the chain.",
        "sec-4.2.4",
        parameters=("chain_composition", "chain_scheduling"),
    ),
    _section(
        "5.2.6",
        "Further settings",
        "CNI plug-in, Kubernetes, host, offloads of NICs.",
        "kubernetes",
        parameters=("cni_plugin", "cni_configuration", "orchestration", "distribution", "hosting", "nic_offloads"),
        suites=(
            "cluster_base_line.robot",
            "cluster_host.robot",
            "cluster_network.robot",
            "cluster_new_flows.robot",
            "cluster_pairs.robot",
            "cluster_policies.robot",
            "cluster_reconfiguration.robot",
            "cluster_service.robot",
            "cluster_share.robot",
        ),
    ),
    _section(
        "5.2.7",
        "Networking between nodes",
        "Overlay or underlay between the nodes.",
        "sec-4.2.5",
        parameters=("between_nodes",),
    ),
)
