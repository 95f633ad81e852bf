"""The virtual worker: a QEMU machine with two NUMA nodes and SR-IOV ports, reached over SSH as a server in a lab is."""
