# Fitted models: one job for all models of a study, which fits what they share once. It leaves alone
# what is there and was made from the same.
#   in   training rows, profiles; no sweep and no split, so no model reads test rows
#   out  results/models/{study}/{model}/  fitted models in {split}/{fold}/, and summary.json

for study in experiment.studies:

    rule:
        """Search hyper-parameters and fit the models of a study on every split and fold."""
        name:
            f"train_{study}"
        input:
            spec=ancient(studies.spec(study)),
            features=studies.features(study),
            cost=studies.cost_asked(study),
            training=f"results/clean/{study}.parquet",
            usual=studies.usual(study),
            profiles=studies.profiles(study),
        output:
            # Not deleted before: what was made from the same stays as it is.
            [update(directory(path)) for path in studies.models(study)],
        log:
            f"results/logs/train/{study}.log",
        priority: studies.training_work(study)
        threads: studies.processes(study)
        params:
            models=lambda wildcards, study=study: studies.trained(study, code),
            question=studies.question(study),
            gpus=studies.gpus(study),
            folder=lambda wildcards, study=study: studies.folder(study),
            search=settings.search.model_dump(mode="json"),
            seed=settings.seed,
            cap=values.row_cap,
        script:
            "../scripts/train.py"
