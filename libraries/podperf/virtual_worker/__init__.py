"""The virtual worker: a QEMU machine with two NUMA nodes and SR-IOV ports. podperf uses it over SSH, as in a lab."""
