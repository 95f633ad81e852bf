"""The virtual worker: a QEMU machine with two NUMA nodes and SR-IOV ports. SSH reaches it like a server in a lab."""
