"""A device plug-in of a kubelet that offers devices which are only names, as one of SR-IOV offers virtual functions.

Usage: `device_plugin.py [--folder FOLDER] [--socket NAME] RESOURCE DEVICE[=FILE,FILE...]...`, as root. It prints
`registered`, and runs until its input ends. The folder has the kubelet's socket, and gets that of the plug-in. Plug-ins
beside each other need different names. A container that gets devices has their names in its environment
(PCIDEVICE_INTEL_COM_VF=DEVICE for the resource intel.com/vf), and their device files. The messages are those of
k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

FOLDER = "/var/lib/kubelet/device-plugins"
SOCKET = "podperf-test.sock"
TIMEOUT = 60.0  # seconds for an answer of the kubelet, whose machine may be emulated


def field(number: int, value: bytes) -> bytes:
    """A field of a message of Protocol Buffers that is a text or another message (wire type 2)."""
    length, size = b"", len(value)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


class DevicePlugin:
    """The answers to a kubelet. `devices` have their device files, which have the same paths in the container."""

    def __init__(self, resource: str, devices: Mapping[str, Sequence[str]]) -> None:
        self._variable = "PCIDEVICE_" + re.sub(r"\W", "_", resource).upper()
        self._devices = devices
        self.over = threading.Event()

    def options(self, *_: object) -> bytes:
        """No options."""
        return b""

    def watch(self, *_: object) -> Iterator[bytes]:
        """All devices, healthy, until the end."""
        yield b"".join(field(1, field(1, device.encode()) + field(2, b"Healthy")) for device in self._devices)
        self.over.wait()

    def allocate(self, request: bytes, _: object) -> bytes:
        """The environment and the device files of a container with those devices of which the request has the names."""
        given = [device for device in self._devices if device.encode() in request]
        variable = field(1, self._variable.encode()) + field(2, ",".join(given).encode())
        paths = dict.fromkeys(path.encode() for each in given for path in self._devices[each])
        files = (field(3, field(1, path) + field(2, path) + field(3, b"rw")) for path in paths)
        return field(1, field(1, variable) + b"".join(files))


def main(folder: str, socket: str, resource: str, devices: Mapping[str, Sequence[str]]) -> None:
    """Serve, register, and wait for the end of the input."""
    plugin = DevicePlugin(resource, devices)
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(plugin.options),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(plugin.watch),
        "Allocate": grpc.unary_unary_rpc_method_handler(plugin.allocate),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix://{folder}/{socket}")
    server.start()
    with grpc.insecure_channel(f"unix://{folder}/kubelet.sock") as kubelet:
        register = kubelet.unary_unary("/v1beta1.Registration/Register")
        register(field(1, b"v1beta1") + field(2, socket.encode()) + field(3, resource.encode()), timeout=TIMEOUT)
    print("registered", flush=True)
    sys.stdin.read()
    plugin.over.set()
    server.stop(None)


def _device(text: str) -> tuple[str, list[str]]:
    """A device and its files, as the command line has them."""
    name, _, files = text.partition("=")
    return name, files.split(",") if files else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--socket", default=SOCKET)
    parser.add_argument("resource")
    parser.add_argument("devices", nargs="+", type=_device)
    wanted = parser.parse_args()
    main(wanted.folder, wanted.socket, wanted.resource, dict(wanted.devices))
