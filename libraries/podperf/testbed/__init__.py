"""The testbed in use: takes machines, ports and CPUs, and builds systems under test on them."""
