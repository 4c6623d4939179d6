# The pages of the report and its tables.
#   in   every table of every study, the GPUs' profiles, data/cards.csv,
#        data/recorded/h200/profile.json
#        section.py and published/ of every study
#   out  results/report/index.html                  the front page
#        results/report/gpus.html                   the GPUs, and how far their sweeps can be trusted
#        results/report/{study}/                    pages of a study
#        results/report/assets/, data/              what they share; what the lookup reads
#        results/report.zip                         all of it, to send
#        results/report/{study}.models.csv          metrics per model and split
#        results/report/{study}.configurations.csv  best fixed configuration per GPU


report: "../report/workflow.rst"


rule report:
    """Write the pages of the report, and its main tables as CSV."""
    input:
        **reported.reads(),
        templates=reported.templates(),
    output:
        front=report(
            "results/report/index.html",
            category="Report",
            labels={"what": "the front page, by itself"},
            caption="../report/page.rst",
        ),
        # The other pages lie beside it; each output more has Snakemake digest every input again.
        archive=report(
            "results/report.zip",
            category="Report",
            labels={"what": "every page, to unpack"},
            caption="../report/archive.rst",
        ),
        models=[
            report(
                f"results/report/{study}.models.csv",
                category=entry.title,
                labels={"what": "models and baselines"},
                caption="../report/models.rst",
            )
            for study, entry in experiment.studies.items()
        ],
        configurations=[
            report(
                f"results/report/{study}.configurations.csv",
                category=entry.title,
                labels={"what": "one configuration for all sizes"},
                caption="../report/configurations.rst",
            )
            for study, entry in experiment.studies.items()
        ],
    log:
        "results/logs/report.log",
    threads: max(1, min(len(reported.files), CORES))
    params:
        **reported.params(),
        code=code("scripts/report.py", *reported.sections()),
        settings_files=settings_to_name(SETTINGS, workflow.overwrite_configfiles),
    script:
        "../scripts/report.py"
