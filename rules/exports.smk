# The report's figures and tables as files for papers and talks, on demand (target exports).
#   in   what the report reads
#   out  results/exports/{study}/   figures as SVG and PDF, tables as CSV and Parquet
#        results/exports/overview/  those of the pages that are about all studies


rule exports:
    """Write every figure of the report as SVG and PDF, every table as CSV and Parquet."""
    input:
        **reported.reads(),
    output:
        directory("results/exports"),
    log:
        "results/logs/exports.log",
    threads: max(1, min(len(reported.files), CORES))
    params:
        **reported.params(),
        code=code("scripts/exports.py", *reported.sections()),
    script:
        "../scripts/exports.py"
