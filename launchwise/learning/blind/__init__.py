"""Blind tests: problems are drawn and answered first, then measured, then scored.

The answers are written with a digest and the commit before anything of these problems is measured,
so no model, no feature and no constant can have been chosen by them.
"""
