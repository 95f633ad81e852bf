"""Tests that share one cluster of two nodes."""
