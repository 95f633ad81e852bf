"""The counted machine: a QEMU machine whose clock counts instructions. Tester and system under test run inside it."""
