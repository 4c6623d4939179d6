"""The page on the quality of the measurements, health.html."""
