"""Documents: YAML files that a person wrote, read with the line of each key and held against a JSON Schema."""
