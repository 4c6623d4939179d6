"""Every table of the pipeline: schemas, reading and writing."""
