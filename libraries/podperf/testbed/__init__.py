"""The testbed in use: machines, ports and CPUs are taken, and systems under test are built on them."""
