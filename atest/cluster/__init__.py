"""Clusters on this machine, for real. They start, leave nothing, and pods measure their networks.

A subfolder has one cluster: its conftest.py starts it, and all tests of the subfolder share it. A file of this folder
starts its own clusters.

Without the programs of a cluster these tests are skipped, because building them takes ten minutes of CPU time: `sudo
./podperf cluster up` once, or PODPERF_CLUSTER=1.
"""
