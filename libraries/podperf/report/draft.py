"""The sections of the draft that podperf follows: their requirements, and podperf's suites for them. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from podperf.model import DRAFT
from podperf.records import Record, sections_of

NAME = DRAFT
TITLE = "Considerations for Benchmarking Network Performance in Containerized Infrastructures"
URL = f"https://datatracker.ietf.org/doc/html/{NAME}"


@dataclass(frozen=True)
class Section:
    """One section of the draft.

    `suites` are the files with its tests. An `informative` section has nothing to measure. A tag puts a test into a
    section: `sec-4.1.1`, `appendix-c`. Tests of another draft's section have other tags, which `tags` names.
    """

    number: str
    title: str
    asks: str
    covered: str = ""
    suites: tuple[str, ...] = ()
    informative: bool = False
    tags: tuple[str, ...] = ()

    def has(self, record: Record) -> bool:
        """Whether a test belongs to this section."""
        found, wanted = record.test, self.tags or (self.tag,)
        return any(each in found.tags for each in wanted) or any(each in found.sections for each in sections_of(wanted))

    @property
    def depth(self) -> int:
        """1 for a top-level section."""
        return self.number.count(".") + 1

    def holds(self, other: Section) -> bool:
        """True if the other section is a part of this one."""
        return other.number.startswith(f"{self.number}.")

    @property
    def tag(self) -> str:
        """The tag that puts a test into this section."""
        return f"appendix-{self.number.lower()}" if self.number[0].isalpha() else f"sec-{self.number}"

    @property
    def pattern(self) -> str:
        """The pattern by which `--include` selects the tests of this section."""
        return "OR".join(self.tags or (self.tag,))


SECTIONS = (
    Section(
        "1",
        "Introduction",
        "Says why containers need considerations of their own; defines no new metrics.",
        informative=True,
    ),
    Section(
        "2",
        "Terminology",
        "Takes its words from RFC 2119, RFC 8172, RFC 8204 and ETSI TST 009.",
        "Reports and documentation use these words.",
        informative=True,
    ),
    Section(
        "3",
        "Containerized Infrastructure Overview",
        "Existing BMWG methods apply to containerized VNFs as they are.",
        "NDR and PDR as search goals of RFC 9971, with the trials of RFC 2544 or TST 009 by the presets rfc2544 and "
        "tst009; the preset quick meets neither. MRR as in FD.io CSIT. CNI plug-ins of the distribution attach the "
        "pods of the data planes that have one; podperf itself wires those of the others.",
        informative=True,
    ),
    Section("4", "Benchmarking Considerations", "Networking models and resource configuration change the result."),
    Section(
        "4.1",
        "Networking Models",
        "The way from NIC to pod decides the performance: five models.",
        "The five models. The network of a Kubernetes cluster, of whichever model: between two pods, and through a "
        "Service. Traffic that begins or ends in a pod: Pod2Pod, Pod2External, External2Pod and, by memif or "
        "vhost-user, Container2Container of versions 05 and 07. BMP2VMP and VMP2VMP are chains on two workers (section "
        "4.2.5), of which one or both are virtual machines.",
    ),
    Section(
        "4.1.1",
        "Kernel-space non-Acceleration Model",
        "Linux bridge, point-to-point routing, MACVLAN/IPVLAN, OVS kernel datapath: every frame crosses the kernel.",
        "Each of these data planes, 1 to N pods, compared with the bare path of the same run.",
        suites=(
            "4.1.1_kernel_space.robot",
            "4.1.1_kernel_space_sweep.robot",
            "4.1_headers_sweep.robot",
            "4.1_findings.robot",
        ),
    ),
    Section(
        "4.1.2",
        "User-space Acceleration Model",
        "OVS-DPDK and VPP with vhost-user or memif to the pod, bypassing the kernel.",
        "Open vSwitch with DPDK and vhost-user, its user-space datapath without DPDK, pods joined by memif, and VPP in "
        "three ways where it is installed; 1 to N pods. netmap, which version 05 of the draft names, is not covered: "
        "it needs a kernel module that is no part of Linux, and no CNI plug-in attaches pods by it.",
        suites=(
            "4.1.2_user_space.robot",
            "4.1.2_user_space_sweep.robot",
            "4.1_headers_sweep.robot",
            "4.1_findings.robot",
            "C_multi_pod.robot",
        ),
    ),
    Section(
        "4.1.3",
        "eBPF Acceleration Model",
        "Forwarding at the tc and XDP hooks, AF_XDP in pods, AF_XDP below a user-space vSwitch.",
        "Own BPF programs at the tc hook (with and without peer redirect) and the XDP hook, pods on AF_XDP sockets "
        "with and without busy polling, Open vSwitch on AF_XDP; OVS-DPDK (4.1.2) where its ports are AF_XDP devices of "
        "DPDK and its pods have vhost-user; 1 to N pods.",
        suites=("4.1.3_ebpf.robot", "4.1.3_ebpf_sweep.robot", "4.1_headers_sweep.robot", "4.1_findings.robot"),
    ),
    Section(
        "4.1.4",
        "Smart-NIC Acceleration Model",
        "SR-IOV virtual functions straight into pods; eBPF/XDP offloaded to the NIC.",
        "Pods on virtual functions, with DPDK or in their kernel, 1 to N pods; XDP offload where the NIC has it.",
        suites=(
            "4.1.4_smart_nic.robot",
            "4.1.4_smart_nic_sweep.robot",
            "4.1_headers_sweep.robot",
            "B_sriov_dpdk.robot",
        ),
    ),
    Section(
        "4.1.5",
        "Model Combination",
        "SR-IOV for north/south and a user-space vSwitch for east/west traffic in one chain.",
        "Virtual functions to the network and OVS-DPDK or VPP between the pods, chains of 2 and 3 pods; beside virtual "
        "functions alone (east/west) and beside the switch alone (north/south).",
        suites=(
            "4.1.5_model_combination.robot",
            "4.1.5_model_combination_sweep.robot",
            "4.1_headers_sweep.robot",
            "4.1_findings.robot",
            "hackathon_113.robot",
        ),
    ),
    Section(
        "4.2",
        "Resources Configuration",
        "Placement of CPU, memory and pages changes the result.",
        "Methods beside throughput on chains of one pod: loss curve, back-to-back frames, latency by load, system "
        "recovery, repeated instantiation, soak.",
        suites=("4.2_methods.robot",),
    ),
    Section(
        "4.2.1",
        "CPU Isolation / NUMA Affinity",
        "Pinned and isolated CPUs keep noisy neighbours away; crossing NUMA nodes costs.",
        "A pod on CPUs of its own, shared or any, alone and beside a neighbour: a computing program, "
        "one that fills memory, or another chain under load. A neighbour with and without limits. Pods on "
        "the NIC's NUMA node or another, and in the order that was published.",
        suites=("4.2.1_cpu_isolation_numa.robot", "A_contiv_vpp.robot", "B_sriov_dpdk.robot", "C_multi_pod.robot"),
    ),
    Section(
        "4.2.2",
        "Hugepages",
        "Hugepages lower the rate of TLB misses. The draft calls the effect on general packet processing relatively "
        "negligible, and reports a better network performance of DPDK applications.",
        "Pods and switch with pages of 2 MiB, of 1 GiB and with ordinary pages by turns, read back from the processes. "
        "A data plane of the kernel is the control.",
        suites=("4.2.2_hugepages.robot",),
    ),
    Section(
        "4.2.3",
        "CPU Cores and Memory Allocation",
        "CPUs and RAM a pod has, cores for poll-mode drivers and the vSwitch.",
        "A pod with steps of CPU time, memory and descriptors, AF_XDP busy polling or none; where the worker has the "
        "CPUs, 1, 2 and 4 CPUs a pod, 1, 2 and 4 pollers of OVS-DPDK, a poller with or without its own CPU, "
        "and the latency of VPP with 1, 2 and 4 cores.",
        suites=("4.2.3_cpu_memory.robot",),
    ),
    Section(
        "4.2.4",
        "Service Function Chaining",
        "Chains of pods: scenarios should reflect the number of VNFs on a host and the acceleration of their network.",
        "Chains of 1, 2, 4 and 6 pods of each data plane by turns, and the share of the rate that a further pod takes. "
        "Up to four chains beside each other on the same ports, the rate of each and their fairness; a pod "
        "in two chains. Pods with their kernel behind pods with DPDK. The hackathon's chains, also with virtual "
        "functions.",
        suites=(
            "4.2.4_mixed_chains.robot",
            "4.2.4_service_density.robot",
            "4.2.4_service_function_chains.robot",
            "4.1_findings.robot",
            "hackathon_113.robot",
        ),
    ),
    Section(
        "4.2.5",
        "Additional Considerations",
        "Several hosts: overlay (VXLAN, …) or underlay (BGP) between the nodes.",
        "Chains along two workers, by turns, too. A cable, an encapsulation or routes by BGP join the workers.",
        suites=("4.2.5_multi_host.robot", "4.2.5_joins.robot", "hackathon_113.robot"),
    ),
    Section(
        "5",
        "Security Considerations",
        "The test network is independent: test traffic must not reach production or management networks.",
        "Interfaces that lead out are refused; no frame leaves the testbed's links; black-box measurement only. The "
        "draft wants no special capabilities for the benchmark in the system under test: where more threads poll than "
        "there are CPUs, podperf-rotation gives them turns, and record and report say so.",
        suites=("5_isolation.robot",),
    ),
    Section(
        "6",
        "References",
        "RFC 8172, RFC 8204, ETSI TST 009 and the projects' own reports.",
        informative=True,
    ),
    Section("A", "Benchmarking Experience (Contiv-VPP)", "Contiv-VPP under three kinds of CPU allocation."),
    Section(
        "A.1",
        "Benchmarking Environment",
        "Three servers, VPP with two VRFs, two pods.",
        "The lab is a topology: topologies/appendix_a_contiv_vpp.yaml.",
        informative=True,
    ),
    Section(
        "A.2",
        "Trouble shooting and Result",
        "Finding: on one NUMA node exclusive CPUs beat shared ones. In the table pods without CMK are the slowest.",
        "Pods on CPUs of their own, on a shared pool and on any, on the NIC's NUMA node or another; order compared.",
        suites=("A_contiv_vpp.robot",),
    ),
    Section("B", "Benchmarking Experience (SR-IOV with DPDK)", "SR-IOV VFs with DPDK in a pod, CPUs given by CMK."),
    Section(
        "B.1",
        "Benchmarking Environment",
        "Three servers, Multus, SR-IOV CNI, shared and exclusive core pools.",
        "The lab is a topology: topologies/appendix_b_sriov_dpdk.yaml.",
        informative=True,
    ),
    Section(
        "B.2",
        "Trouble shooting and Results",
        "Finding: without CPU management SR-IOV performs worst, with exclusive cores best.",
        "Pods with virtual functions on CPUs of their own, on a shared pool and on any; order compared.",
        suites=("B_sriov_dpdk.robot",),
    ),
    Section("C", "Benchmarking Experience (Multi-pod Test)", "Two pods in a chain: OVS-DPDK beside VPP-memif."),
    Section("C.1", "Benchmarking Overview", "Frames cross two pods over a user-space vSwitch.", informative=True),
    Section(
        "C.2",
        "Hardware Configurations",
        "The authors' servers and NICs.",
        "The lab is a topology: topologies/appendix_c_multi_pod.yaml.",
        informative=True,
    ),
    Section(
        "C.3",
        "NUMA Allocation Scenario",
        "Six placements of vSwitch and two pods on two NUMA nodes.",
        "Each is set up on a worker with two nodes, relative to the NIC's; their order is compared under C.5.",
        suites=("C_multi_pod.robot",),
    ),
    Section(
        "C.4",
        "Traffic Generator Configurations",
        "NDR by TRex's binary search, 64 to 1518 bytes.",
        "Every frame size is a row; rates are those that survive all the tester can send (MRR), by turns.",
        suites=("C_multi_pod.robot",),
    ),
    Section(
        "C.5",
        "Benchmark Results and Trouble-shootings",
        "Findings: VPP-memif beats OVS-DPDK; vSwitch and pods on one node matters more than the NIC's node.",
        "VPP with memif beside OVS-DPDK, and the six placements beside each other: ranked as published?",
        suites=("C_multi_pod.robot", "4.1_findings.robot"),
    ),
    Section("D", "Change Log (D.1 to D.10)", "What changed since versions 00 to 09.", informative=True),
)
