"""Speaks to a TRex server through TRex's own client: a program of its own, run by the interpreter that fits that client.

    python trex_client.py '{"client": FOLDER or null, "address": …, "port": …, "publisher_port": …, "ports": [0, 1],
                            "user": …, "api": [MAJOR, MINOR] of the server}'

TRex's client brings its own yaml, scapy and zmq, which must not come into podperf's process; and this program imports
nothing of podperf and keeps to Python 3.6. One JSON object a line: first {"ready": …} or {"error": …, "kind": …}, then
for each request {"streams": [of left, of right], "duration": s, "unpaced": bool, "settle": s} one {"trial": …} or
{"error": …}; {"close": true} ends it. Streams are those of `trex_streams.py`. It reports what the server counted, and
judges nothing.
"""

import importlib
import json
import os
import sys
import time

POLL = 0.01  # seconds between two questions whether traffic has ended
PATIENCE = 1.0  # seconds beyond the planned end until traffic that does not end is stopped
LONGEST_SETTLING = 5.0  # seconds until counters that never rest are taken as they are
COUNTERS = ("opackets", "ipackets", "oerrors", "ierrors")
DESTINATION_MAC_OF_FRAME = 1  # TRex: take the destination as it stands in the frame


class Refused(Exception):
    """The server or its client cannot be used; `kind` tells the caller why."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def load_api(folder):
    """TRex's client library: the one in this folder, or the interpreter's trex-stl-lib."""
    if folder:
        if not os.path.isdir(folder):
            raise Refused("client", "there is no folder " + folder)
        sys.path.insert(0, folder)
    problems = []
    for name in ("trex.stl.api", "trex_stl_lib.api"):
        try:
            return importlib.import_module(name)
        except Exception as error:  # whatever its many modules raise
            problems.append("{}: {}: {}".format(name, type(error).__name__, error))
    raise Refused("client", "; ".join(problems))


class Session:
    """The two ports of a server, held until `close`."""

    def __init__(self, options):
        self.api = load_api(options["client"])
        self.ports = options["ports"]
        self.client = self.api.STLClient(
            username=options["user"],
            server=options["address"],
            sync_port=options["port"],
            async_port=options["publisher_port"],
            verbose_level=_quiet(self.api),
        )
        self.server_api = tuple(options["api"])
        self.made_promiscuous = []

    def open(self):
        """Connect, take the ports and stop what runs on them; returns what the ports are."""
        api = _api_of(self.client)
        if api[0] != self.server_api[0] or api[1] > self.server_api[1]:  # older clients hang, newer ones are refused
            raise Refused("version", "{}.{}".format(*api))
        self.client.connect()
        known = self.client.get_all_ports()
        missing = [port for port in self.ports if port not in known]
        if missing:
            raise Refused("ports", "it has ports {}, not {}".format(known, missing))
        for port in self.ports:
            owner = self.status(port).get("owner", "")
            if owner and owner != _user(self.client):
                raise Refused("owner", "port {} is held by {!r}".format(port, owner))
        self.client.acquire(ports=self.ports, force=True)  # ours already, from a run that was killed, or free
        self.clear()
        self.watch_all(True)
        ports = [self.facts(port) for port in self.ports]
        return {"ports": ports, "client_api": "{}.{}".format(*api), "python": sys.version.split()[0]}

    def close(self):
        """Stop the traffic and give the ports back."""
        try:
            self.clear()
            self.watch_all(False)
            self.client.release(ports=self.ports)
        finally:
            self.client.disconnect()

    def watch_all(self, wanted):
        """Let the ports count frames to any destination MAC, as pods may not rewrite it; False puts that back."""
        for port in self.ports:
            mode = self.status(port).get("attr", {}).get("promiscuous", {})
            if wanted and mode.get("enabled") is False:
                self.client.set_port_attr(ports=[port], promiscuous=True)
                self.made_promiscuous.append(port)
        if not wanted and self.made_promiscuous:
            self.client.set_port_attr(ports=self.made_promiscuous, promiscuous=False)

    def clear(self):
        """No traffic and no streams on the ports."""
        active = [port for port in self.ports if self.sending(port)]
        if active:
            self.client.stop(ports=active)
        self.client.remove_all_streams(ports=self.ports)

    def rpc(self, method, **parameters):
        """One question to the server, answered at once and not from the client's memory."""
        link = self.client.conn.rpc if hasattr(self.client, "conn") else self.client.comm_link
        answer = link.transmit(method, parameters)
        if not answer:
            raise Refused("server", "{}: {}".format(method, answer.err()))
        return answer.data()

    def status(self, port):
        return self.rpc("get_port_status", port_id=port, profile_id="*", block=False)

    def sending(self, port):
        return self.status(port)["state"] in ("TX", "PAUSE", "PCAP_TX")

    def counters(self):
        """Frames that each port has counted since the server started."""
        answers = [self.rpc("get_port_stats", port_id=port) for port in self.ports]
        return [{name: answer.get(name, 0) for name in COUNTERS} for answer in answers]

    def facts(self, port):
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

    def trial(self, request):
        """Send the streams, wait until everything has come to rest, and count."""
        self.clear()
        streams = dict(zip(self.ports, request["streams"]))
        sending = [port for port in self.ports if streams[port]]
        for port in sending:
            self.client.add_streams([self.stream(each) for each in streams[port]], ports=[port])
        before = self.counters()
        began = time.time()
        asked = time.monotonic()
        # The end comes by itself even when this program is killed; virtual time, so not before `duration`.
        self.client.start(ports=sending, mult="1", force=True, duration=request["duration"] + PATIENCE)
        samples, cut_short = self.watch(sending, asked, request["duration"], request["unpaced"])
        wall = time.monotonic() - asked
        after, settled = self.settled(request["settle"])
        groups = [each["latency_group"] for port in sending for each in streams[port]]
        return {
            "started": began,
            "wall": wall,
            "elapsed": time.monotonic() - asked,
            "before": before,
            "after": after,
            "samples": samples,
            "cut_short": cut_short,
            "settled": settled,
            "groups": self.latency([group for group in groups if group is not None]),
        }

    def watch(self, sending, asked, duration, unpaced):
        """Wait for the end of the traffic.

        Returns two samples of what was sent, with their times, from within the traffic, and whether it had to be
        stopped. The server keeps virtual time, so only samples tell how fast it really sends.
        """
        samples = []
        for share in (0.1, 0.9):
            time.sleep(max(0.0, asked + share * duration - time.monotonic()))
            earliest = time.monotonic()
            counted = [each["opackets"] for each in self.counters()]
            samples.append({"earliest": earliest - asked, "latest": time.monotonic() - asked, "sent": counted})
        time.sleep(max(0.0, asked + duration - time.monotonic()))
        limit = asked + (duration if unpaced else duration * 1.05 + PATIENCE)
        while any([self.sending(port) for port in sending]):
            if time.monotonic() >= limit:
                self.client.stop(ports=sending)
                return samples, not unpaced
            time.sleep(POLL)
        return samples, False

    def settled(self, rest):
        """The counters when none has changed for `rest` seconds, and whether that came about."""
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

    def latency(self, groups):
        """What the server knows of the frames of these groups, by group."""
        if not groups:
            return {}
        if hasattr(self.client, "get_pgid_stats"):
            found = self.client.get_pgid_stats(groups)
        else:
            found = self.client.get_stats(ports=self.ports, sync_now=True)
        return {
            str(group): {
                "latency": _plain(found["latency"].get(group, {}).get("latency", {})),
                "errors": _plain(found["latency"].get(group, {}).get("err_cntrs", {})),
            }
            for group in groups
        }

    def stream(self, wanted):
        """One stream of `trex_streams.py` as TRex's."""
        api = self.api
        program = None
        if wanted["hosts"]:
            first, last = wanted["hosts"]
            commands = [api.STLVmFlowVar(name="host", min_value=first, max_value=last, size=2, op="inc")]
            commands += [api.STLVmWrFlowVar(fv_name="host", pkt_offset=place) for place in wanted["places"]]
            program = api.STLScVmRaw([*commands, api.STLVmFixIpv4(offset=14)])
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


def _plain(value):
    """A mapping with JSON's types only: TRex puts objects of its own where it has no figure."""
    return {
        str(key): _plain(each) if isinstance(each, dict) else each
        for key, each in value.items()
        if isinstance(each, (dict, int, float, str))
    }


def _api_of(client):
    """The version of the API that this client speaks."""
    spoken = client.ctx.api_ver if hasattr(client, "ctx") else client.api_vers[0]
    return spoken["major"], spoken["minor"]


def _user(client):
    return client.ctx.username if hasattr(client, "ctx") else client.username


def _quiet(api):
    """The least talkative logging, by the word of a new client or the number of an old one."""
    return "none" if api.__name__.startswith("trex.") else 0


def say(answer):
    sys.__stdout__.write(json.dumps(answer) + "\n")
    sys.__stdout__.flush()


def main(options):
    # What TRex's client prints must not come between the answers.
    sys.stdout = sys.stderr
    try:
        session = Session(options)
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


def _text(error):
    """The message of an error in one line, without colours."""
    text = str(getattr(error, "msg", "") or error)
    return " ".join("".join(c for c in text if c.isprintable() or c == "\n").split())


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this program: there is a `trex` beside it
    sys.exit(main(json.loads(sys.argv[1])))
