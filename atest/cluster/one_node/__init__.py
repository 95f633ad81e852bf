"""Tests that share one cluster of one node."""
