"""A device plug-in of a kubelet that offers devices which are only names, as one of SR-IOV offers virtual functions.

Usage: `device_plugin.py RESOURCE DEVICE...`, on the node, as root. It prints `registered`, and runs until its input
ends. A container that gets devices has their names in its environment (PCIDEVICE_INTEL_COM_VF=DEVICE for the resource
intel.com/vf). The messages are those of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1. They are few and small, so the
few lines here write them.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

FOLDER = "/var/lib/kubelet/device-plugins"
SOCKET = "podperf-test.sock"


def field(number: int, value: bytes) -> bytes:
    """A field of a message (Protocol Buffers, wire type 2). It has at most 127 bytes."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


class DevicePlugin:
    """The answers to a kubelet."""

    def __init__(self, resource: str, devices: list[str]) -> None:
        self._variable = "PCIDEVICE_" + re.sub(r"\W", "_", resource).upper()
        self._devices = devices
        self.over = threading.Event()

    def options(self, *_: object) -> bytes:
        """No options."""
        return b""

    def watch(self, *_: object) -> Iterator[bytes]:
        """All devices, healthy, until the end."""
        yield b"".join(field(1, field(1, each.encode()) + field(2, b"Healthy")) for each in self._devices)
        self.over.wait()

    def allocate(self, request: bytes, _: object) -> bytes:
        """The environment of a container with those devices of which the request has the names."""
        given = ",".join(each for each in self._devices if each.encode() in request)
        variable = field(1, self._variable.encode()) + field(2, given.encode())
        return field(1, field(1, variable))


def main(resource: str, devices: list[str]) -> None:
    """Serve, register, and wait for the end of the input."""
    plugin = DevicePlugin(resource, devices)
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(plugin.options),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(plugin.watch),
        "Allocate": grpc.unary_unary_rpc_method_handler(plugin.allocate),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix://{FOLDER}/{SOCKET}")
    server.start()
    with grpc.insecure_channel(f"unix://{FOLDER}/kubelet.sock") as kubelet:
        register = kubelet.unary_unary("/v1beta1.Registration/Register")
        register(field(1, b"v1beta1") + field(2, SOCKET.encode()) + field(3, resource.encode()), timeout=10)
    print("registered", flush=True)
    sys.stdin.read()
    plugin.over.set()
    server.stop(None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
