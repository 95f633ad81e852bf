"""Speaks to a TRex server through TRex's own client. It is a separate program for a Python that fits the client.

    python -I trex_client.py '{"client": FOLDER or null, "address": …, "port": …, "publisher_port": …, "ports": [0, 1],
                            "user": …, "api": [MAJOR, MINOR] of the server}'

TRex's client brings its own yaml, scapy and zmq, which must not get into podperf's process. This program imports
nothing of podperf, and works with Python 3.7. `-I` keeps this program's folder, which has another `trex`, out of
Python's path.

Input and output are lines with one JSON object each. The first answer is {"ready": …} or {"error": …, "kind": …}. Then
each request {"streams": [of left, of right], "lead": s, "duration": s, "unpaced": bool, "settle": s} gets one answer
{"trial": …} or {"error": …}. {"close": true} ends the program. `trex_streams.py` makes the streams. Their first frames
leave `lead` seconds after the start. The program reports the server's counters, and judges nothing. If the server is
gone, it prints {"error": …, "kind": "gone", "at": time} at once, and ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

POLL = 0.01  # seconds between two questions whether traffic has ended
PATIENCE = 1.0  # seconds after the planned end; then the program stops the traffic
LONGEST_SETTLING = 5.0  # seconds to wait for counters that keep changing
COUNTERS = ("opackets", "ipackets", "oerrors", "ierrors")
DESTINATION_MAC_OF_FRAME = 1  # TRex: use the destination MAC in the frame
CONNECT_TIMEOUT = 3.0  # seconds
SILENCE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}  # a machine that is silent for 5 s is gone
BETWEEN_CONNECTIONS = 0.2  # seconds; a server closes a connection on which nothing valid arrives


class Refused(Exception):
    """The server or its client cannot be used. `kind` gives the caller the reason."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def load_api(folder: str | None) -> Any:
    """TRex's client library: the one in this folder, or the interpreter's trex-stl-lib."""
    if folder:
        if not os.path.isdir(folder):  # noqa: PTH112 - this program imports few modules
            raise Refused("client", f"there is no folder {folder}")
        sys.path.insert(0, folder)
    problems = []
    for name in ("trex.stl.api", "trex_stl_lib.api"):
        try:
            return importlib.import_module(name)
        except Exception as error:  # the client imports many modules, which can raise anything
            problems.append(f"{name}: {type(error).__name__}: {error}")
    raise Refused("client", "; ".join(problems))


class TrexSession:
    """The two ports of a server. The session holds them until `close`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.api = load_api(options["client"])
        self.ports: list[int] = options["ports"]
        self.user: str = options["user"]
        self.client = self.api.STLClient(
            username=self.user,
            server=options["address"],
            sync_port=options["port"],
            async_port=options["publisher_port"],
            verbose_level=_quiet(self.api),
        )
        self.server_api = tuple(options["api"])
        self.made_promiscuous: list[int] = []

    def open(self) -> dict[str, Any]:
        """Connect, take the ports and stop their traffic. Returns the facts about the ports."""
        major, minor = _api_of(self.client)
        if major != self.server_api[0] or minor > self.server_api[1]:  # the server would refuse the client, or hang
            raise Refused("version", f"{major}.{minor}")
        self.client.connect()
        known = self.client.get_all_ports()
        missing = [port for port in self.ports if port not in known]
        if missing:
            raise Refused("ports", f"it has ports {known}, not {missing}")
        for port in self.ports:
            owner = self.status(port).get("owner", "")
            if owner and owner != self.user:
                raise Refused("owner", f"port {port} is held by {owner!r}")
        self.client.acquire(ports=self.ports, force=True)  # the ports are free, or a killed run of podperf holds them
        self.clear()
        self.hear_everything()
        ports = [self.facts(port) for port in self.ports]
        return {"ports": ports, "client_api": f"{major}.{minor}", "python": sys.version.split()[0]}

    def close(self) -> None:
        """Stop the traffic and give the ports back."""
        try:
            self.clear()
            if self.made_promiscuous:
                self.client.set_port_attr(ports=self.made_promiscuous, promiscuous=False)
            self.client.release(ports=self.ports)
        finally:
            self.client.disconnect()

    def hear_everything(self) -> None:
        """Let the ports count frames to any destination MAC, because pods may leave the MAC unchanged."""
        for port in self.ports:
            mode = self.status(port).get("attr", {}).get("promiscuous", {})
            if mode.get("enabled") is False:
                self.client.set_port_attr(ports=[port], promiscuous=True)
                self.made_promiscuous.append(port)

    def clear(self) -> None:
        """Remove traffic and streams from the ports."""
        for port in self.ports:
            self.client.ports[port].sync()  # events update the client's memory too late
        active = [port for port in self.ports if self.sending(port)]
        if active:
            self.client.stop(ports=active)
        self.client.remove_all_streams(ports=self.ports)

    def rpc(self, method: str, **parameters: Any) -> Any:
        """Ask the server itself, and not the client's memory."""
        answer = self.client.conn.rpc.transmit(method, parameters)
        if not answer:
            raise Refused("server", f"{method}: {answer.err()}")
        return answer.data()

    def status(self, port: int) -> Any:
        """State, owner and attributes of a port."""
        return self.rpc("get_port_status", port_id=port, profile_id="*", block=False)

    def sending(self, port: int) -> bool:
        """Whether traffic runs on a port."""
        return self.status(port)["state"] in {"TX", "PAUSE", "PCAP_TX"}

    def counters(self) -> list[dict[str, int]]:
        """Frames that each port has counted since the server started."""
        answers = [self.rpc("get_port_stats", port_id=port) for port in self.ports]
        return [{name: answer.get(name, 0) for name in COUNTERS} for answer in answers]

    def facts(self, port: int) -> dict[str, Any]:
        """The facts about a port."""
        information = self.client.get_port_info(ports=[port])[0]
        attributes = self.status(port).get("attr", {})
        return {
            "number": port,
            "mac": information.get("hw_mac") or attributes["layer_cfg"]["ether"]["src"],
            "driver": information.get("driver"),
            "speed_bits_per_second": float(information.get("speed", 0)) * 1e9,
            "link_up": attributes.get("link", {}).get("up"),
            "pci": information.get("pci_addr"),
            "numa_node": information.get("numa"),
        }

    def trial(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send the streams, wait until the counters no longer change, and report them."""
        self.clear()
        streams = dict(zip(self.ports, request["streams"]))  # noqa: B905 - Python 3.7
        sending = [port for port in self.ports if streams[port]]
        for port in sending:
            self.client.add_streams([self.stream(each) for each in streams[port]], ports=[port])
        before = self.counters()
        began, asked = time.time(), time.monotonic()
        # The traffic ends by itself, also if this program is killed. TRex keeps virtual time, so never before
        # `duration`.
        self.client.start(ports=sending, mult="1", force=True, duration=request["duration"] + PATIENCE)
        due = asked + request["lead"]
        samples = self.watch(sending, due, request["duration"], request["unpaced"])
        wall = time.monotonic() - due
        after, settled = self.settled(request["settle"])
        groups = [each["latency_group"] for port in sending for each in streams[port]]
        return {
            "started": began,
            "wall": wall,
            "elapsed": time.monotonic() - asked,
            "before": before,
            "after": after,
            "samples": samples,
            "settled": settled,
            "groups": self.latency([group for group in groups if group is not None]),
        }

    def watch(self, sending: list[int], due: float, duration: float, unpaced: bool) -> list[dict[str, Any]]:
        """Wait for the end of the traffic, or stop it. Its first frame leaves at the time `due`.

        Returns two samples of the sent frames with their times, taken during the traffic. The server keeps virtual
        time, so only samples show its real rate.
        """
        samples = []
        for share in (0.1, 0.9):
            time.sleep(max(0.0, due + share * duration - time.monotonic()))
            earliest = time.monotonic()
            counted = [counter["opackets"] for counter in self.counters()]
            samples.append({"earliest": earliest - due, "latest": time.monotonic() - due, "sent": counted})
        time.sleep(max(0.0, due + duration - time.monotonic()))
        limit = due + (duration if unpaced else duration * 1.05 + PATIENCE)
        while any(self.sending(port) for port in sending):
            if time.monotonic() >= limit:
                self.client.stop(ports=sending)
                break
            time.sleep(POLL)
        return samples

    def settled(self, rest: float) -> tuple[list[dict[str, int]], bool]:
        """The counters after none has changed for `rest` seconds, and whether this happened in time."""
        last, changed = self.counters(), time.monotonic()
        limit = changed + LONGEST_SETTLING
        while time.monotonic() < limit:
            time.sleep(rest / 5)
            now = self.counters()
            if now != last:
                last, changed = now, time.monotonic()
            elif time.monotonic() - changed >= rest:
                return last, True
        return last, False

    def latency(self, groups: list[int]) -> dict[str, Any]:
        """The server's figures for the frames of these groups, by group."""
        if not groups:
            return {}
        if hasattr(self.client, "get_pgid_stats"):
            found = self.client.get_pgid_stats(groups)
        else:
            found = self.client.get_stats(ports=self.ports, sync_now=True)
        known = found.get("latency", {})
        return {
            str(group): {
                "latency": _plain(known.get(group, {}).get("latency", {})),
                "errors": _plain(known.get(group, {}).get("err_cntrs", {})),
            }
            for group in groups
        }

    def stream(self, wanted: dict[str, Any]) -> Any:
        """TRex's stream for one stream of `trex_streams.py`."""
        api = self.api
        commands = []
        if wanted["values"]:
            first, last = wanted["values"]
            order = "random" if wanted["random"] else "inc"
            commands += [api.STLVmFlowVar(name="flow", min_value=first, max_value=last, size=2, op=order)]
            commands += [api.STLVmWrFlowVar(fv_name="flow", pkt_offset=place) for place in wanted["places"]]
        if wanted["udp"] is not None:  # also of the latency stream, whose payload changes
            kind = api.CTRexVmInsFixHwCs.L4_TYPE_UDP
            checksum = api.STLVmFixChecksumHw(l3_offset=wanted["packet"], l4_offset=wanted["udp"], l4_type=kind)
            checksum.l2_len = wanted["packet"]  # trex-stl-lib 0.3 forgets an offset that is a number
            commands.append(checksum)
        elif commands:
            commands += [api.STLVmFixIpv4(offset=wanted["packet"])]
        program = api.STLScVmRaw(commands) if commands else None
        if wanted["count"]:
            mode = api.STLTXSingleBurst(pps=wanted["rate"], total_pkts=wanted["count"])
        elif wanted["share"]:
            mode = api.STLTXCont(percentage=wanted["share"])
        else:
            mode = api.STLTXCont(pps=wanted["rate"])
        group = wanted["latency_group"]
        return api.STLStream(
            packet=api.STLPktBuilder(pkt_buffer=bytes.fromhex(wanted["frame"]), vm=program),
            mode=mode,
            isg=wanted["delay"],
            flow_stats=api.STLFlowLatencyStats(pg_id=group) if group is not None else None,
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=DESTINATION_MAC_OF_FRAME,
        )


def _plain(value: dict[Any, Any]) -> dict[str, Any]:
    """A mapping with JSON types only. TRex uses objects of its own in place of missing figures."""
    return {
        str(key): _plain(each) if isinstance(each, dict) else each
        for key, each in value.items()
        if isinstance(each, (dict, int, float, str))
    }


def _api_of(client: Any) -> tuple[int, int]:
    """The version of the API that this client speaks."""
    spoken = client.ctx.api_ver if hasattr(client, "ctx") else client.conn.api_vers[0]
    return spoken["major"], spoken["minor"]


def _quiet(api: Any) -> Any:
    """The lowest log level: a word in a new client, a number in an old one."""
    return "none" if api.__name__.startswith("trex.") else 0


def _text(error: Exception) -> str:
    """The message of an error in one line."""
    text = str(getattr(error, "msg", "") or error)
    return " ".join("".join(each for each in text if each.isprintable() or each.isspace()).split())


_speaking = threading.Lock()


def say(answer: dict[str, Any]) -> None:
    """Print one answer for podperf."""
    assert sys.__stdout__ is not None
    with _speaking:
        sys.__stdout__.write(json.dumps(answer) + "\n")
        sys.__stdout__.flush()


def until_gone(address: str, port: int) -> str:
    """Wait until no server listens at this port, and return the kernel's error.

    TRex's client asks a dead server for 12 s before it gives up. An open TCP connection ends at once when the server
    dies, and costs the server nothing.
    """
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=CONNECT_TIMEOUT)
        except OSError as error:
            return error.strerror or str(error)
        with connection:
            _await_end(connection)
        time.sleep(BETWEEN_CONNECTIONS)


def _await_end(connection: socket.socket) -> None:
    """Wait until a connection is closed or reset, or does not answer the kernel's keep-alives."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in SILENCE.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    with contextlib.suppress(OSError):  # a new connection shows whether the server is gone
        while connection.recv(1024):
            pass


def end_with_server(address: str, port: int) -> None:
    """End this program as soon as the server is gone."""
    why = until_gone(address, port)
    say({"error": why, "kind": "gone", "at": time.time()})
    os._exit(1)


def main(options: dict[str, Any]) -> int:
    """Answer requests until the end of the input."""
    sys.stdout = sys.stderr  # output of TRex's client must not mix with the answers
    watched = (options["address"], options["port"])
    threading.Thread(target=end_with_server, args=watched, daemon=True).start()
    try:
        session = TrexSession(options)
        facts = session.open()
    except Exception as error:
        say({"error": _text(error), "kind": getattr(error, "kind", "server")})
        return 1
    try:
        say({"ready": facts})
        for line in sys.stdin:
            request = json.loads(line)
            if "close" in request:
                break
            try:
                say({"trial": session.trial(request)})
            except Exception as error:
                say({"error": _text(error), "kind": getattr(error, "kind", "server")})
    finally:
        session.close()
    say({"closed": True})
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
