"""Generates the JSON schemas and the pages of docs/reference."""
