"""What the kernel of a host offers data planes and pods: devices, virtual functions, hugepages, interrupts, CPUs."""
