"""The page of a study's models, models.html."""
