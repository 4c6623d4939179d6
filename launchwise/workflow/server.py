"""The server of the workflow's scripts: its libraries, its start and its end.

See :mod:`launchwise.base.forking`.
"""

from __future__ import annotations

from collections.abc import Collection

from launchwise.base.forking import Server

TABLES = (
    "pandas",
    "pyarrow.parquet",
    "pandera.backends.pandas.builtin_checks",
    "launchwise.gpus.datasheets",
    "launchwise.experiment.settings",
    "launchwise.learning.clean",
    "launchwise.learning.evaluate",
    "launchwise.learning.prediction_errors",
    "launchwise.measuring.rows",
)
MODELS = (
    *TABLES,
    "sklearn.ensemble",
    "sklearn.neighbors",
    "sklearn.tree",
    "lightgbm",
    "xgboost",
    "optuna.storages.journal",
    "launchwise.learning.predicting",
    "launchwise.learning.recommending",
    "launchwise.learning.training",
)
GROUPS = {"tables": TABLES, "models": MODELS}
"""Modules that scripts need; no library of models for scripts without a model. The second group is
loaded where the first one is loaded already."""

_running: list[Server] = []


def start_server(deployment: Collection[object], at_once: bool) -> None:
    """Start the server of this process's scripts.

    Parameters
    ----------
    deployment
        Snakemake's ways to deploy software. With any of them (a container, Conda) scripts run in
        an environment of their own, which this process does not have: then there is no server.
    at_once
        Whether it loads the modules for tables before a script asks for them.
    """
    if not deployment and not _running:
        _running.append(Server(GROUPS, at_once))


def stop_server() -> None:
    """End the server, if there is one."""
    while _running:
        _running.pop().stop()
