"""Parts of a host's kernel for data planes and pods: devices, virtual functions, hugepages, interrupts, CPUs."""
