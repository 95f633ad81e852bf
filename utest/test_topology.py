"""Topology files: their meaning, and the messages about wrong ones."""

import json
import os
import re
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podperf.dataplanes import DATA_PLANES
from podperf.environment import PASSWORD_VARIABLE
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh_login import Login
from podperf.methods.presets import PRESETS
from podperf.metrics import METRICS
from podperf.model import IMIX, Direction, FrameSize
from podperf.pods.networks import NamespacePods
from podperf.pods.runc import RuncPods
from podperf.testbed import access
from podperf.topology import (
    SCHEMA_PATH,
    MethodSettings,
    PortSettings,
    SoftwareSettings,
    Threshold,
    Topology,
    TopologyError,
    TrafficSettings,
    TrexServerSettings,
    WorkerSettings,
    load_topology,
    topology_schema,
)
from podperf.topology import TesterSettings as SettingsOfTester  # pytest takes Test… for a test

TOPOLOGIES = SCHEMA_PATH.parent
MINIMAL = "version: 1\nname: t\n"
RUNTIMES = {"namespaces": NamespacePods, "runc": RuncPods}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "t.yaml"


def problems(file: Path, content: str | bytes) -> list[str]:
    """The messages about this content, without the file's name."""
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TopologyError) as caught:
        load_topology(
            file, data_planes={name: DATA_PLANES[name] for name in ("wire", "linux-bridge")}, pod_runtimes=RUNTIMES
        )
    lines = [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]
    assert lines == [line.removeprefix(f"{file}:") for line in caught.value.problems], "one line a problem"
    return lines


def loaded(file: Path, more: str) -> Topology:
    file.write_text(MINIMAL + more)
    return load_topology(file)


def test_a_minimal_file_means_the_defaults(file: Path) -> None:
    assert loaded(file, "") == Topology(
        path=str(file),
        name="t",
        description="",
        tester=SettingsOfTester(SoftwareSettings(), None, PortSettings(), PortSettings()),
        workers=(WorkerSettings("local", None),),
        traffic=TrafficSettings((Direction.LEFT_TO_RIGHT,), 1),
        method=MethodSettings("quick", 5, 1.0),
    )


def test_every_setting_arrives(file: Path) -> None:
    topology = loaded(
        file,
        """
description: "# not a comment"
tester:
  settings: {engine: packet-ring}
  cpus: 0
  ports:
    left: {interface: t0, namespace: gen, destination_mac: 02:00:00:AA:00:01, destination_address: 198.19.255.1}
    right: {interface: t1}
workers: [{connection: local, cpus: "1-2, 4"}]
traffic: {directions: bidirectional, flows: 1000000}
method: {search: rfc2544, loss_ratio: 0.001, mrr: {trials: 7, duration: 0.5}}
thresholds:
  - {metric: mrr, unit: ratio of baseline, minimum: 0.5, data_plane: linux-bridge, pods: 2, frame: 1518B}
  - {metric: latency_p99, unit: us, maximum: 5e2, frame: imix}
  - {metric: mrr, unit: Mpps, minimum: 1, frame: 1500.0}
labels: {rack: 012, open: yes, since: 2026-11-01, spare: true}
results: {server: "https://results.example.com/podperf"}
""",
    )
    left = PortSettings("t0", "gen", "02:00:00:aa:00:01", "198.19.255.1")
    assert topology.tester == SettingsOfTester(SoftwareSettings("packet-ring"), (0,), left, PortSettings("t1"))
    assert topology.external
    assert topology.workers[0].cpus == (1, 2, 4)
    assert topology.traffic == TrafficSettings((Direction.LEFT_TO_RIGHT, Direction.RIGHT_TO_LEFT), 1_000_000)
    assert topology.method == MethodSettings("rfc2544", 7, 0.5, loss_ratio=0.001)
    first, second, third = topology.thresholds
    assert first.frame is not None
    assert first == Threshold("mrr", "ratio of baseline", 0.5, None, "linux-bridge", 2, first.frame)
    assert first.frame.sequence == (1518,)
    assert second == Threshold("latency_p99", "us", maximum=500.0, frame=IMIX)
    assert third.frame == FrameSize.parse(1500)
    assert topology.labels == {"rack": "012", "open": "yes", "since": "2026-11-01", "spare": "true"}
    assert topology.description == "# not a comment"
    assert topology.results_server == "https://results.example.com/podperf"


def test_an_integer_may_be_written_with_a_point(file: Path) -> None:
    topology = loaded(file, "traffic: {flows: 10.0}\nmethod: {mrr: {trials: 3.0}}\ntester: {ssh: {port: 22.0}}")
    whole = (topology.traffic.flows, topology.method.mrr_trials, topology.tester.ssh.port)
    assert [repr(each) for each in whole] == ["10", "3", "22"]


@pytest.mark.parametrize("mac", ["00:11:22:33:44:55", "02:10:20:30:40:50", "0e:00:00:00:00:01"])
def test_a_mac_needs_no_quotes(file: Path, mac: str) -> None:
    ports = f"tester: {{ports: {{left: {{interface: a, destination_mac: {mac}}}, right: {{interface: b}}}}}}\n"
    assert loaded(file, ports).tester.left.destination_mac == mac


@pytest.mark.parametrize("name", ["on", "no", "yes", "off", "y"])
def test_words_that_yaml_1_1_takes_for_truth_values_are_words(file: Path, name: str) -> None:
    file.write_text(f"version: 1\nname: {name}\n")
    assert load_topology(file).name == name


LAB = (  # three lines
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}\n"
    "workers:\n"
    "  - {connection: ssh, ssh: {address: w}, ports: {left: {interface: a}, right: {interface: b}}}\n"
)
CASES: dict[str, str | tuple[str, ...]] = {
    "pods: {runtime: runcc}": "3: pods.runtime: found 'runcc'; allowed: namespaces, runc; did you mean 'runc'?",
    "tester: {settings: {engine: xpd}}": (
        "3: tester.settings.engine: found 'xpd'; allowed: auto, xdp, packet-ring; did you mean 'xdp'?"
    ),
    "tester: {engin: xdp}": (
        "3: tester.engin: unknown key; allowed: type, connection, ssh, cpus, maximum_load, settings, ports"
    ),
    "tester:": (
        "3: tester: found nothing; allowed: a mapping with the keys "
        "type, connection, ssh, cpus, maximum_load, settings, ports"
    ),
    "tester: {type: trexx}": "3: tester.type: found 'trexx'; allowed: software, trex; did you mean 'trex'?",
    "tester: {type: 7}": "3: tester.type: found 7; allowed: the name of a kind of tester; as text it is '7', in quotes",
    "tester: {settings: {rate: 1}}": "3: tester.settings.rate: unknown key; allowed: engine",
    "third_party: acme": "3: third_party: found 'acme'; allowed: a list",
    "third_party: ['']": "3: third_party[0]: found ''; allowed: the folder of a Python package",
    "tester: {trex: {server: {directory: /opt/trex}}}": ("3: tester.trex.server: unknown key; allowed: engine"),
    "tester: {type: trex, engine: xdp}": (
        "3: tester.engine: unknown key; allowed: address, port, publisher_port, client, interpreter, ports, server"
    ),
    "tester: {type: trex, settings: {ports: {left: 1}}}": (
        "3: tester.settings.ports: found a mapping; allowed: two ports"
    ),
    "tester: {type: trex, settings: {server: {directory: /x}, ports: {left: 1, right: 0}}}": (
        "3: tester.settings.ports: found a mapping; "
        "allowed: left 0 and right 1, as podperf starts the server with its ports in this order"
    ),
    "tester: {type: trex, ports: {left: {interface: a}, right: {interface: b}}}": (
        "3: tester.ports.left.interface: found 'a'; "
        "allowed: nothing, as this tester has ports of its own (tester.settings)"
    ),
    "tester: {type: trex, settings: {server: {directory: /x}}}\n"
    "workers: [{ports: {left: {interface: a}, right: {interface: b}}}]": tuple(
        f"3: tester.ports.{side}.interface: found nothing; "
        f"allowed: the interface that is cabled to workers[0].ports.{side}"
        for side in ("left", "right")
    ),
    "tester: {type: trex, settings: {server: {}}}": (
        "3: tester.settings.server.directory: found nothing; allowed: the folder that holds t-rex-64"
    ),
    "description: 12": "3: description: found 12; allowed: text; as text it is '12', in quotes",
    "description: {}": "3: description: found a mapping; allowed: text",
    "workers: [{cpus: 5-2}]": (
        "3: workers[0].cpus: found '5-2'; "
        "allowed: auto or a list of CPUs such as 0 or 2-5,7, not a mask (the range 5-2 runs backwards)"
    ),
    "workers: [{cpus: 9000}]": (
        "3: workers[0].cpus: found 9000; allowed: auto or a list of CPUs such as 1 or 2-5,7, not a mask"
    ),
    "workers: [{cpus: 0xff0, switch_cpus: 0x30}]": tuple(  # 4080 and 48, as YAML reads them
        f"3: workers[0].{key}: found {mask}; "
        f"allowed: auto or a list of CPUs such as 0 or 2-5,7, not a mask (the mask {mask} is {cpus} as a list)"
        for key, mask, cpus in (("cpus", "0xff0", "4-11"), ("switch_cpus", "0x30", "4-5"))
    ),
    "tester: {cpus: 0o17}": (
        "3: tester.cpus: found 0o17; allowed: auto or a list of CPUs such as 0 or 2-5,7, not a mask "
        "('0o17' is neither a CPU number nor a range such as 2-5)"
    ),
    "workers: [{cpus: '0xff0'}]": (
        "3: workers[0].cpus: found '0xff0'; allowed: auto or a list of CPUs such as 1 or 2-5,7, not a mask"
    ),
    "workers: [{cpus: true}]": (
        "3: workers[0].cpus: found true; allowed: auto or a list of CPUs such as 1 or 2-5,7, not a mask; "
        "as text it is 'true', in quotes"
    ),
    "traffic:\n  flows: 1e7": "4: traffic.flows: found 1e7; allowed: an integer from 1 to 1000000",
    "traffic: {vlans: {left: [100]}}": (
        "3: traffic: found a mapping; allowed: 0 to 2 VLAN tags, as many from the left as from the right"
    ),
    "traffic: {vlans: {left: [0], right: [1]}}": (
        "3: traffic.vlans.left[0]: found 0; allowed: a VLAN ID of 1 to 4094, or id, priority (0 to 7) and type "
        "(802.1Q or 802.1ad)"
    ),
    "traffic: {varying: [vlan-id]}": (
        "3: traffic: found a mapping; allowed: the same (inner) VLAN tag on both sides, if the VLAN ID differs "
        "from flow to flow"
    ),
    "traffic: {varying: [source-port], flows: 20000}": (
        "3: traffic: found a mapping; allowed: 1 to 16352 flows that differ in source-port"
    ),
    "traffic: {family: ipv5}": "3: traffic.family: found 'ipv5'; allowed: ipv4, ipv6; did you mean 'ipv6'?",
    "traffic: {flows: 0}": "3: traffic.flows: found 0; allowed: an integer from 1 to 1000000",
    "traffic: {flows: .inf}": "3: traffic.flows: found '.inf'; allowed: an integer from 1 to 1000000",
    "method: {mrr: {duration: 0}}": "3: method.mrr.duration: found 0; allowed: a number from 0.1 to 3600",
    "method: {search: csitt}": (
        "3: method.search: found 'csitt'; allowed: quick, csit, tst009, rfc2544; did you mean 'csit'?"
    ),
    "labels: {a: [1]}": "3: labels.a: found a list; allowed: text",
    "name: again": "3: name: found a second time, first in line 2; allowed: once",
    "<<: {name: x}": (
        "3: <<: unknown key; allowed: version, name, description, not_comparable, tester, workers, pods, "
        "results, third_party, traffic, method, thresholds, data_planes, black_box, labels"
    ),
    "labels: {a: !!python/name:os.system x}": (
        "3: labels.a: found the tag !!python/name:os.system; allowed: plain values without tags"
    ),
    "tester:\n  ports:\n    left: {interface: eth1}": (
        "5: tester.ports.left.interface: found one for this port only; allowed: one for both ports, or for neither"
    ),
    "black_box: {programs: [vpp_main]}": (
        "3: black_box: found a black box; "
        "allowed: only beside existing ports (`tester.ports`), without ports of a worker"
    ),
    "black_box: {programs: ['']}\ntester: {ports: {left: {interface: a}, right: {interface: b}}}": (
        "3: black_box.programs[0]: found ''; allowed: a name of a process"
    ),
    "tester:\n  ports:\n    left: {namespace: x}": (
        "5: tester.ports.left.namespace: found 'x'; allowed: only beside `interface`, for an existing interface"
    ),
    "workers: [{connection: ssh, ports: {left: {interface: a}, right: {interface: b}}}]\n"
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}": (
        "3: workers[0].ssh.address: found nothing; allowed: a host name or an IP address, as `connection: ssh` needs it"
    ),
    "workers: [{connection: ssh, ssh: {address: a}}]": (
        "3: workers[0].ports: found nothing; "
        "allowed: interfaces for left and right, as a run makes no cable to another machine"
    ),
    "tester: {connection: ssh, ports: {left: {interface: a}, right: {interface: b}}}": (
        "3: tester.ssh.address: found nothing; allowed: a host name or an IP address, as `connection: ssh` needs it"
    ),
    "tester: {connection: ssh, ssh: {address: a}}": (
        "3: tester.ports: found nothing; "
        "allowed: interfaces for left and right, as a run makes no cable from another machine"
    ),
    "tester: {type: trex, connection: ssh, ssh: {address: a}}": (
        "3: tester.connection: found 'ssh'; allowed: local with a tester that runs already, which its settings reach"
    ),
    "tester: {type: trex, connection: ssh, ssh: {address: a}, settings: {server: {directory: /opt/trex}}}": (
        "3: tester.ports: found nothing; "
        "allowed: interfaces for left and right, as a run makes no cable from another machine"
    ),
    "workers: [{connection: virtual}]\ntester: {connection: ssh, ssh: {address: a}}": (
        "4: tester.connection: found 'ssh'; "
        "allowed: local with a virtual worker, as the run makes its cables on this machine"
    ),
    "workers: [{connection: virtual, ports: {left: {interface: a}, right: {interface: b}}}]": (
        "3: workers[0].ports.left.interface: found 'a'; "
        "allowed: nothing, as the run makes the ports of a virtual worker",
        "3: workers[0].ports.right.interface: found 'b'; "
        "allowed: nothing, as the run makes the ports of a virtual worker",
    ),
    "workers: [{connection: virtual}]\ntester: {ports: {left: {interface: a}, right: {interface: b}}}": (
        "4: tester.ports.left.interface: found 'a'; allowed: nothing, as the run makes the ports of a virtual worker",
        "4: tester.ports.right.interface: found 'b'; allowed: nothing, as the run makes the ports of a virtual worker",
    ),
    "workers: [{connection: virtual}, {connection: virtual}]\n"
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}": (
        "4: tester.ports.left.interface: found 'a'; allowed: nothing, as the run makes the ports of a virtual worker",
        "4: tester.ports.right.interface: found 'b'; allowed: nothing, as the run makes the ports of a virtual worker",
    ),
    "workers: [{connection: virtual}, {connection: virtual, ports: {left: {interface: a}, right: {interface: b}}}]": (
        "3: workers[1].ports.left.interface: found 'a'; "
        "allowed: nothing, as the run makes the ports of a virtual worker",
        "3: workers[1].ports.right.interface: found 'b'; "
        "allowed: nothing, as the run makes the ports of a virtual worker",
    ),
    "workers: [{connection: virtual}, "
    "{connection: ssh, ssh: {address: a}, ports: {left: {interface: a}, right: {interface: b}}}]": (
        "3: workers[0].connection: found 'virtual'; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one"
    ),
    "workers: [{connection: counted}]\ntester: {connection: ssh, ssh: {address: a}}": (
        "4: tester.connection: found 'ssh'; allowed: local with a counted machine, which has the tester inside"
    ),
    "workers: [{connection: counted}, {connection: local}]": (
        "3: workers[0].connection: found 'counted'; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one",
        "3: workers[1].connection: found 'local'; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one",
    ),
    "workers: [{connection: counted}, {connection: counted, counted: {detail: true}}]\n"
    "tester: {type: trex, settings: {server: {directory: /t}}}": (
        "3: workers[1].counted: found settings of a counted machine; "
        "allowed: only for the first worker, as one counted machine has all of them",
        "4: tester.type: found 'trex'; allowed: software with `connection: counted`",
    ),
    "workers: [{connection: counted}]\ntester: {type: trex, settings: {server: {directory: /t}}}": (
        "4: tester.type: found 'trex'; allowed: software with `connection: counted`"
    ),
    "workers: [{connection: virtual}]\ntester: {type: trex}": (
        "4: tester.type: found 'trex'; "
        "allowed: with `connection: virtual` software, or a TRex that podperf starts on ports of the kernel"
    ),
    "tester: {type: trex, settings: {server: {directory: /x}}, ports: {left: {destination_mac: 02:00:00:00:00:01}}}": (
        "3: tester.ports.left.destination_mac: found '02:00:00:00:00:01'; "
        "allowed: only beside `interface`, for an existing interface"
    ),
    "workers: []": "3: workers: found a list; allowed: a list of 1 to 8",
    f"workers: [{', '.join(['{}'] * 9)}]": "3: workers: found a list; allowed: a list of 1 to 8",
    "workers: {cpus: 1}": "3: workers: found a mapping; allowed: a list of 1 to 8",
    "workers:\n  - {cpus: 1}\n  - {connection: virtual}": (
        "4: workers[0].connection: found nothing; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one",
        "5: workers[1].connection: found 'virtual'; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one",
    ),
    "workers: [{connection: local}, {connection: virtual}, {connection: local}]": tuple(
        f"3: workers[{number}].connection: found '{connection}'; "
        "allowed: ssh for each of several workers, local or counted for all, or virtual for all but one local one"
        for number, connection in enumerate(("local", "virtual", "local"))
    ),
    "workers: [{connection: local, ports: {left: {interface: a}}}, {connection: virtual}]\n"
    "tester: {ports: {left: {interface: b}, right: {interface: c}}}": (
        "3: workers[0].ports: found a mapping; allowed: nothing, as the run makes the cables of several workers here",
        "4: tester.ports.left.interface: found 'b'; allowed: nothing, as the run makes the ports of a virtual worker",
        "4: tester.ports.right.interface: found 'c'; allowed: nothing, as the run makes the ports of a virtual worker",
    ),
    "workers:\n  - connection: local\n  - {connection: local, ports: {left: {interface: a}}}": (
        "5: workers[1].ports: found a mapping; allowed: nothing, as the run makes the cables of several workers here"
    ),
    LAB + "  - connection: ssh\n    ports: {left: {interface: a}}": (
        "6: workers[1].ssh.address: found nothing; "
        "allowed: a host name or an IP address, as `connection: ssh` needs it",
        "7: workers[1].ports.right.interface: found nothing; allowed: an interface of this worker",
    ),
    LAB + "  - {connection: ssh, ssh: {address: w}, ports: {left: {interface: a}, right: {interface: a}}, cpus: 3-1}": (
        "6: workers[1].cpus: found '3-1'; "
        "allowed: auto or a list of CPUs such as 0 or 2-5,7, not a mask (the range 3-1 runs backwards)",
        "6: workers[1].ports.right.interface: found 'a'; allowed: another one than the left port's",
        "6: workers[1].ssh.address: found 'w'; allowed: a machine that is neither the tester's nor another worker",
    ),
    LAB + "  - {connection: ssh, ssh: {adress: w}}": (
        "6: workers[1].ports.left.interface: found nothing; allowed: an interface of this worker",
        "6: workers[1].ports.right.interface: found nothing; allowed: an interface of this worker",
        "6: workers[1].ssh.address: found nothing; "
        "allowed: a host name or an IP address, as `connection: ssh` needs it",
        "6: workers[1].ssh.adress: unknown key; allowed: address, port, user, key, known_hosts, login; "
        "did you mean 'address'?",
    ),
    "workers: [{ssh: {address: a}}]": "3: workers[0].ssh.address: found 'a'; allowed: only with `connection: ssh`",
    "workers: [{ssh: {password: secret}}]": (
        "3: workers[0].ssh.password: unknown key; allowed: address, port, user, key, known_hosts, login"
    ),
    "workers: [{ports: {right: {interface: a}}}]": (
        "3: workers[0].ports.right.interface: found one for this port only; allowed: one for both ports, or for neither"
    ),
    "workers: [{ports: {left: {pci: 0000:81:00.0}}}]": (
        "3: workers[0].ports.left.pci: found '0000:81:00.0'; allowed: only beside `interface`"
    ),
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}\n"
    "workers: [{ports: {left: {interface: a}, right: {interface: b, pci: 81:00.0}}}]": (
        "4: workers[0].ports.right.pci: found '81:00.0'; allowed: a PCI address such as 0000:81:00.0"
    ),
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}\n"
    "workers: [{ports: {left: {interface: a}, right: {interface: a}}}]": (
        "4: workers[0].ports.right.interface: found 'a'; allowed: another one than the left port's"
    ),
    "tester: {ports: {left: {interface: a, destination_mac: 02:00:00:00:00:01}, right: {interface: b}}}\n"
    "workers: [{ports: {left: {interface: a}, right: {interface: b}}}]": (
        "3: tester.ports.left.destination_mac: found '02:00:00:00:00:01'; "
        "allowed: only for a black box, without ports of a worker"
    ),
    "tester:\n  ports:\n    left: {interface: a}\n    right: {interface: a}": (
        "6: tester.ports.right.interface: found 'a'; allowed: another interface than the left port's"
    ),
    "thresholds:\n  - {metric: mrr, unit: us, minimum: 1}": (
        "4: thresholds[0].unit: found 'us'; allowed: ratio of baseline, Mpps, Gbps for mrr"
    ),
    "thresholds:\n  - {metric: pdr, unit: Mpps, maximum: 1}": (
        "4: thresholds[0].maximum: found a maximum for pdr; allowed: `minimum` for a rate"
    ),
    "thresholds:\n  - {metric: latency_p50, unit: us}": (
        "4: thresholds[0].maximum: found nothing; allowed: a number above 0, as a latency needs it"
    ),
    "thresholds:\n  - {metric: mrr, unit: ratio of baseline, minimum: 50}": (
        "4: thresholds[0].minimum: found 50; allowed: a ratio above 0 and up to 1 (0.5 is half of the baseline)"
    ),
    "thresholds:\n  - {unit: Mpps, minimum: 1}": (
        f"4: thresholds[0].metric: found nothing; allowed: {', '.join(METRICS)}"
    ),
    "thresholds:\n  - {metric: mrr, unit: Mpps, minimum: 1, frame: 9999B}": (
        "4: thresholds[0].frame: found '9999B'; allowed: a frame size of 64 to 9022 bytes (with FCS), or a mix "
        "such as IMIX"
    ),
    "thresholds:\n  - {metric: mrr, unit: Mpps, minimum: 1, data_plane: linux-brige}": (
        "4: thresholds[0].data_plane: found 'linux-brige'; allowed: linux-bridge, wire; did you mean 'linux-bridge'?"
    ),
}


@pytest.mark.parametrize("more", CASES, ids=lambda more: " ".join(more.split()))
def test_a_problem_names_line_key_found_and_allowed(file: Path, more: str) -> None:
    expected = CASES[more]
    assert problems(file, MINIMAL + more) == ([expected] if isinstance(expected, str) else list(expected))


PORTS = "ports: {left: {interface: a}, right: {interface: b}}"
OLD_LAB = (  # two lines
    f"tester: {{{PORTS}}}\nworker: {{connection: ssh, ssh: {{address: w0}}, {PORTS}}}\n"
)


def test_the_old_keys_of_workers_are_read_and_said_to_be_old(file: Path) -> None:
    old = loaded(file, OLD_LAB + f"further_workers:\n  - {{ssh: {{address: w1}}, {PORTS}}}\n")
    assert old.outdated == (
        f"{file}:4: worker: an old key; write this worker as the first item of the list `workers`",
        f"{file}:5: further_workers: an old key; write these workers as further items of the list `workers`, "
        "each with `connection: ssh`",
    )
    items = [f"  - {{connection: ssh, ssh: {{address: w{number}}}, {PORTS}}}\n" for number in (0, 1)]
    new = loaded(file, f"tester: {{{PORTS}}}\nworkers:\n{''.join(items)}")
    assert new.outdated == ()
    assert replace(old, outdated=(), workers=()) == replace(new, workers=())
    assert [worker.key for worker in old.workers] == ["worker", "further_workers[0]"], "as messages name them"
    assert [replace(worker, key="") for worker in old.workers] == [replace(worker, key="") for worker in new.workers]


@pytest.mark.parametrize(
    ("before", "now", "keys"),
    [
        (
            "bpf_object: {file: a.o, hook: tc}",
            "data_planes: {bpf-object: {file: a.o, hook: tc}}",
            ("bpf_object", "data_planes.bpf-object"),
        ),
        (
            "tester: {type: trex, trex: {address: a}}",
            "tester: {type: trex, settings: {address: a}}",
            ("tester.trex", "tester.settings"),
        ),
        (
            "tester: {engine: xdp}",
            "tester: {settings: {engine: xdp}}",
            ("tester.engine", "tester.settings.engine"),
        ),
    ],
)
def test_an_old_key_that_has_moved_is_read_and_said_to_be_old(
    file: Path, before: str, now: str, keys: tuple[str, str]
) -> None:
    file.write_text(f"{MINIMAL}{before}\n")
    old = load_topology(file, DATA_PLANES)
    assert old.outdated == (f"{file}:3: {keys[0]}: an old key; write `{keys[1]}`",)
    file.write_text(f"{MINIMAL}{now}\n")
    assert replace(old, outdated=()) == load_topology(file, DATA_PLANES)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("worker: {cpus: 5-2}", ["3: worker.cpus: found '5-2'; allowed: auto or a list of CPUs such as 0 or 2-5,7, "]),
        ("worker: {cpus: 0x3}", ["3: worker.cpus: found 0x3; allowed: auto or a list of CPUs such as 0 or 2-5,7, "]),
        ("worker: 5", ["3: worker: found 5; allowed: a mapping with the keys connection, ssh, ports, "]),
        ("worker:", ["3: worker: found nothing; allowed: a mapping with the keys connection, ssh, ports, "]),
        ("further_workers: 5", ["3: further_workers: found 5; allowed: a list"]),
        ("further_workers:\n  - 5", ["3: worker.connection: found nothing; ", "4: further_workers[0]: found 5; "]),
        (
            OLD_LAB + "further_workers:\n  - {ssh: {adress: w1}, ports: {left: {interface: a}, right: {interface: b}}}",
            [
                "6: further_workers[0].ssh.address: found nothing; allowed: a host name or an IP address",
                "6: further_workers[0].ssh.adress: unknown key; allowed: address, port, user, key, ",
            ],
        ),
        (
            "worker: {cpus: 1}\nworkers: [{}]\nfurther_workers: []",
            [
                "3: worker: found beside workers in line 4; allowed: one of the two; workers has all workers",
                "5: further_workers: found beside workers in line 4; allowed: one of the two; workers has all workers",
            ],
        ),
    ],
)
def test_problems_below_an_old_key_name_the_keys_of_the_file(file: Path, more: str, expected: list[str]) -> None:
    found = problems(file, MINIMAL + more)
    assert [line[: len(start)] for line, start in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("destination_mac", "01:00:5e:00:00:01"),
        ("destination_mac", "00:00:00:00:00:00"),
        ("destination_mac", "02-00-00-00-00-01"),
        ("destination_mac", '"02:00:00:00:00:01\\n"'),
        ("destination_address", "10.0.0.1"),
        ("destination_address", "198.18.0.256"),
        ("destination_address", "198.20.0.1"),
        ("interface", "sixteen-letters-"),
        ("interface", "../x"),
        ("interface", '".."'),
        ("namespace", "a/b"),
    ],
)
def test_ports_are_held_to_what_a_tester_port_can_be(file: Path, key: str, value: str) -> None:
    other = "" if key == "interface" else "interface: a, "
    (line,) = problems(
        file, MINIMAL + f"tester: {{ports: {{left: {{{other}{key}: {value}}}, right: {{interface: b}}}}}}"
    )
    assert line.startswith(f"3: tester.ports.left.{key}: found "), line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1: the file says nothing"),
        (b"# only a comment\n", "1: the file says nothing"),
        (b"- a\n", "1: the top level is not a mapping"),
        (b"\n\nname", "3: the top level is not a mapping"),
        (b"version: 1\nname: \xe9\n", "2: byte 0xe9 is not UTF-8"),
        ("version: 1".encode("utf-16"), "1: byte 0xff is not UTF-8"),
        (b"version: 1\ntester:\n\tcpus: 0\n", "3: a tab in the indentation; indent with spaces"),
        (b"version: 1\nname: a: b\n", "2: column 8: mapping values are not allowed"),
        (b"version: 1\nname: [a\n", "3: column 1: expected"),
        (b"version: 1\n---\nversion: 1\n", "2: a second document"),
        (b"version: 1\nname: a\x01b\n", "2: the character U+0001 is not allowed"),
        (b"version: 1\nname: &a x\nlabels: {b: *a}\n", "3: column 13: the alias *a is not allowed"),
        (b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "2: column 8: the alias *a is not allowed"),
        (b"x: " + b"[" * 50_000, " nested too deeply"),
        (b"#" * 100_001, " larger than the 100000 bytes that are read"),
        (b"version: 1\nname: t\n? [a]\n: b\n", "3: found a key that is not text"),
        (b"version: 1\nname: t\ntraffic: {flows: " + b"9" * 5000 + b"}\n", "3: traffic.flows: found '999"),
        (b"version: 1\nname: t\ntraffic: {flows: 1e999}\n", "3: traffic.flows: found '1e999'"),
    ],
)
def test_what_is_no_topology_at_all_gets_one_clear_line(file: Path, content: bytes, said: str) -> None:
    (line,) = problems(file, content)
    assert line.startswith(said)
    assert len(line) < 250


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, said in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory"), (fifo, "not a regular file")):
        with pytest.raises(TopologyError, match=said) as caught:
            load_topology(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)


def test_all_problems_come_at_once_and_in_order(file: Path) -> None:
    lines = problems(
        file,
        "version: 3\ntester: {settings: {engine: x}}\ntraffic:\n  flows: -1\n  flows: 2\n"
        "thresholds:\n  - {metric: mrr, unit: us}\n  - 3\nlabel: {}\n",
    )
    assert [re.match(r"(\d+): ([^:]+)", line).groups() for line in lines] == [  # type: ignore[union-attr]
        ("1", "name"),
        ("1", "version"),
        ("2", "tester.settings.engine"),
        ("4", "traffic.flows"),
        ("5", "traffic.flows"),
        ("7", "thresholds[0].minimum"),
        ("7", "thresholds[0].unit"),
        ("8", "thresholds[1]"),
        ("9", "label"),
    ]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["tester", "worker", "further_workers", "workers", "traffic", "method", "thresholds", "labels", "description"]
INNER = ["cpus", "ports", "left", "interface", "metric", "unit", "minimum", "frame", "mrr", "flows", "trials"]


@given(st.dictionaries(st.sampled_from(KEYS), st.dictionaries(st.sampled_from(INNER), plain) | plain))
def test_whatever_a_file_holds_it_loads_or_is_explained(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(yaml.safe_dump({"version": 1, "name": "any", **content}, allow_unicode=True))
    try:
        assert load_topology(file).name == "any"
    except TopologyError as error:
        assert error.problems
        assert all(line.startswith(f"{file}:") and "\n" not in line for line in error.problems)


def test_a_key_with_a_line_end_is_still_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text('version: 1\nname: odd\n"te\\nster": {}\n')
    with pytest.raises(TopologyError) as caught:
        load_topology(file)
    assert caught.value.problems[0].startswith(f"{file}:3: te\\nster: ")


# The files that come with podperf, and the schema.


def walk(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """All keys of the schema, each with its own part of the schema."""
    found = []
    for key, inner in schema.get("properties", {}).items():
        reference = inner.get("$ref", "").removeprefix("#/$defs/")
        target = topology_schema()["$defs"][reference] if reference else inner
        found += [(key, target), *walk(target)]
    return found + (walk(schema["items"]) if "items" in schema else [])


def test_the_schema_is_valid_and_helps_editors() -> None:
    schema = json.loads(SCHEMA_PATH.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for key, inner in walk(schema):
        assert inner.get("title"), key
        names_of_the_user = "type" in (inner.get("additionalProperties") or {})  # labels, and parameters of a kernel
        if inner.get("type") == "object" and not names_of_the_user and key != "settings":
            assert inner["additionalProperties"] is False, key


def test_a_trex_that_runs_already_has_ports_of_its_own(file: Path) -> None:
    topology = loaded(file, "tester: {type: trex, settings: {address: 192.0.2.10, ports: {left: 2, right: 3}}}")
    assert topology.tester.engine == "trex"
    assert topology.tester.kind.has_ports_of_its_own
    assert topology.external
    trex = topology.tester.kind
    assert (trex.address, trex.port, trex.left, trex.right, trex.server) == ("192.0.2.10", 4501, 2, 3, None)


def test_a_trex_that_podperf_starts_gets_the_runs_ports_or_devices(file: Path) -> None:
    topology = loaded(file, "tester: {type: trex, settings: {server: {directory: /opt/trex, low_end: no}}}")
    assert not topology.existing_ports
    assert topology.tester.kind.server == TrexServerSettings("/opt/trex", low_end=False)
    devices = "[0000:81:00.0, 0000:81:00.1]"
    topology = loaded(
        file, f"tester: {{type: trex, settings: {{server: {{directory: /opt/trex, devices: {devices}}}}}}}"
    )
    assert topology.tester.kind.has_ports_of_its_own


def test_local_works_untouched_and_template_loads() -> None:
    local = load_topology(TOPOLOGIES / "local.yaml")
    assert not local.external
    assert local.traffic.directions == (Direction.LEFT_TO_RIGHT,)
    assert {threshold.metric for threshold in local.thresholds} >= {"mrr", "pdr", "latency_p50"}
    for name in ("local.yaml", "template.yaml"):
        assert (TOPOLOGIES / name).read_text().startswith("# yaml-language-server: $schema=topology.schema.json\n")


def test_the_template_shows_every_key_and_the_real_defaults(file: Path) -> None:
    text = (TOPOLOGIES / "template.yaml").read_text()
    schema = json.loads(SCHEMA_PATH.read_text())
    schema["properties"]["data_planes"]["properties"] = {}  # a data plane explains its settings in its own file
    for key, _ in walk(schema):
        assert re.search(rf"^[ #-]*{key}:", text, re.MULTILINE), key
    template = load_topology(TOPOLOGIES / "template.yaml")
    assert replace(template, path=str(file), name="t") == loaded(file, "")


def test_the_commented_out_keys_of_the_template_work_as_written(file: Path) -> None:
    text = (TOPOLOGIES / "template.yaml").read_text()
    keys = r"interface|namespace|metric|unit|minimum|maximum|data_plane|pods|frame|rack|address|key|pci|driver|server"
    key_line = rf"^(\s+)# ((?:- |  )?(?:{keys}): )"
    uncommented, count = re.subn(key_line, r"\1\2", re.sub(r": (?:\{\}|\[\])  # or.*", ":", text), flags=re.MULTILINE)
    assert count == 24
    file.write_text(uncommented.replace("connection: local", "connection: ssh"))
    topology = load_topology(file)
    for settings in (topology.workers[0].ssh, topology.workers[0].left):
        assert settings is not None
        assert None not in vars(settings).values()
    assert topology.tester.left.namespace is not None
    black_box, count = re.subn(r"^(\s+)# ((?:destination_\w+|own_address): )", r"\1\2", uncommented, flags=re.MULTILINE)
    assert count == 3
    no_worker = re.sub(r"^( +)(address|interface: ens|pci|driver)", r"\1# \2", black_box, flags=re.MULTILINE)
    no_ports = r"^(( +)(?:left|right)):\n((?: +#.*\n)+)(?!\2  \S)"
    file.write_text(re.sub(no_ports, r"\1: {}\n\3", no_worker, flags=re.MULTILINE))
    for port_field in fields(PortSettings):
        if port_field.name == "gateway":  # in place of destination_mac
            continue
        assert getattr(load_topology(file).tester.left, port_field.name) is not None
    assert len(topology.thresholds) == 2
    assert topology.labels == {"rack": "12"}


def test_the_examples_in_the_documentation_load(file: Path) -> None:
    text = (TOPOLOGIES.parent / "docs" / "topology.md").read_text()
    examples = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        file.write_text(example)
        load_topology(file)


def test_the_presets_that_a_topology_may_name_are_those_that_there_are() -> None:
    search = topology_schema()["properties"]["method"]["properties"]["search"]
    assert sorted(search["enum"]) == sorted(PRESETS)


def test_the_login_is_that_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Host:
        name = "192.0.2.20"

        def __init__(self, login: Login) -> None:
            logins.append(login)

        def ask(self, *words: str, **_: object) -> Completed:
            return Completed(words, 0, "0\n", "")

        def close(self) -> None:
            return

    logins: list[Login] = []
    monkeypatch.setattr(access, "SshHost", Host)
    ports = "ports: {left: {interface: a}, right: {interface: b}}"
    monkeypatch.setenv(PASSWORD_VARIABLE, "of the environment")
    for way in ("login: password", "login: key", ""):
        ssh = f"{{address: 192.0.2.20, port: 2222, user: toor, key: ~/k, known_hosts: ~/h, {way}}}"
        topology = loaded(file, f"tester: {{{ports}}}\nworkers: [{{connection: ssh, ssh: {ssh}, {ports}}}]")
        for password in ("secret", None):
            with ExitStack() as undo:
                access.log_in("worker", topology.workers[0].ssh, LocalHost(), undo, password)
                undo.pop_all()
            assert PASSWORD_VARIABLE not in os.environ, "children would have it"
    asked = [Login("192.0.2.20", 2222, "toor", "~/k", "~/h", each) for each in ("secret", "of the environment")]
    assert logins == [*asked, *[Login("192.0.2.20", 2222, "toor", "~/k", "~/h")] * 4]


def test_tester_and_worker_are_one_machine_where_they_are_reached_in_the_same_way(file: Path) -> None:
    ports = "ports: {left: {interface: a}, right: {interface: b}}"
    here, there, elsewhere = "connection: local", *(f"connection: ssh, ssh: {{address: {each}}}" for each in "ab")
    for tester, worker, one, ours in (
        (f"{here}", f"{here}", True, True),
        (f"{there}", f"{there}", True, False),
        (f"{there}, {ports}", f"{there}, {ports}", True, False),
        (f"{there}, {ports}", f"{elsewhere}, {ports}", False, False),
        (f"{here}, {ports}", f"{there}, {ports}", False, True),
        (f"{there}, {ports}", f"{here}, {ports}", False, True),
        (f"{there}, {ports}", here, True, False),  # a black box is on nobody's machine
        (here, "connection: virtual", False, True),
    ):
        topology = loaded(file, f"tester: {{{tester}}}\nworkers: [{{{worker}}}]")
        assert (topology.one_machine, topology.uses_this_machine) == (one, ours)


@pytest.mark.parametrize(
    ("vlan", "of_ports"), [("100", (100, 100)), ("{left: 100, right: 200}", (100, 200)), ("0", (0, 0))]
)
def test_virtual_functions_of_each_port_can_have_a_vlan_of_their_own(
    tmp_path: Path, vlan: str, of_ports: tuple[int, int]
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(f"version: 1\nname: lab\nworkers: [{{connection: local, sriov: {{vlan: {vlan}}}}}]\n")
    assert load_topology(file).workers[0].sriov.vlans == of_ports
