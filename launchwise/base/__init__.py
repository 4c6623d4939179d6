"""What everything else stands on: errors, files, typed YAML, expressions."""
