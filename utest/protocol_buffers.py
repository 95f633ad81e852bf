"""An encoder of Protocol Buffers for the few messages of a kubelet that tests write."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A number: seven bits in each byte, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, value: bytes) -> bytes:
    """A field of a message: a text or another message (wire type 2)."""
    return varint(number << 3 | 2) + varint(len(value)) + value
