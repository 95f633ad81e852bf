"""Sends frames with and without a VLAN tag into one interface, and prints the tags of frames that leave another one.

`python tagged_frames.py IN OUT MAC VLAN SECONDS`, in the network namespace of both interfaces. The frames go to this
MAC. The program prints a line for each kind of frame that arrived: `tagged` or `untagged` (as it was sent), and the
VLAN of the frame that came out, or 0 without a VLAN. Frames without a tag are sent first. So if they cross, they arrive
before the frames with a tag.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

ANY_PROTOCOL = 3  # ETH_P_ALL
SOL_PACKET, PACKET_AUXDATA = 263, 8  # linux/if_packet.h
AUXDATA = struct.Struct("=IIIHHHH")  # struct tpacket_auxdata: the kernel takes tags off frames, and tells of them here
TAG_VALID = 0x10  # TP_STATUS_VLAN_VALID
EXPERIMENTAL, VLAN_TAG = b"\x88\xb5", b"\x81\x00"  # EtherTypes


def main(into: str, out_of: str, mac: str, vlan: str, seconds: str) -> None:
    with _open(into) as sender, _open(out_of) as receiver:
        receiver.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        receiver.settimeout(0.1)
        addresses = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000001")
        kinds = {"untagged": b"", "tagged": VLAN_TAG + int(vlan).to_bytes(2, "big")}
        seen: dict[str, int] = {}
        deadline = time.monotonic() + float(seconds)
        while "tagged" not in seen and time.monotonic() < deadline:
            for kind, tag in kinds.items():
                sender.send(addresses + tag + EXPERIMENTAL + kind.encode().ljust(64))
            seen.update(_received(receiver, kinds))
        for kind, tag_seen in seen.items():
            print(kind, tag_seen)


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ANY_PROTOCOL))
    opened.bind((interface, 0))
    return opened


def _received(receiver: socket.socket, kinds: dict[str, bytes]) -> dict[str, int]:
    """Each kind that waits to be received, with its VLAN."""
    seen: dict[str, int] = {}
    while True:
        try:
            frame, control, _, _ = receiver.recvmsg(2048, socket.CMSG_SPACE(AUXDATA.size))
        except TimeoutError:
            return seen
        status, *_, tag, _ = AUXDATA.unpack_from(control[0][2])
        for kind in kinds:
            if frame[14:].startswith(kind.encode().ljust(16)):
                seen[kind] = tag & 0xFFF if status & TAG_VALID else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
