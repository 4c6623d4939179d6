"""Work of Snakemake's scheduler between jobs."""

from __future__ import annotations

from typing import Any


def lift_rate_limit(workflow: Any) -> None:
    """Start local jobs without a limit per second, unless the user set one.

    Under its limit, Snakemake 9 looks for jobs again a second after every time it looked and found
    some, and every job that ends begins one more such series: while jobs wait for a core, the
    hundredth job has it look a hundred times a second, and each time it evaluates the parameters of
    all that wait. The limit protects the queues of clusters, which keep it.

    Parameters
    ----------
    workflow
        Snakemake's workflow, about to run its first job.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if workflow.local_exec and limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None
