"""Testers: what sends and receives the test traffic."""
