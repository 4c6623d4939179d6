"""Sections of a study's pages: its answer, what it rests on, its models."""
