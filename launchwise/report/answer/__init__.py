"""The first page of a study: its answer, and what it rests on."""
