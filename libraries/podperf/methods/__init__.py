"""Methods: what turns a tester into a result."""
