"""YAML files that people write: read with the line of each key, and checked by a JSON Schema."""
