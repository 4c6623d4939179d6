"""Answers that leave the project: headers, modules and files of other tools, all from one table."""
