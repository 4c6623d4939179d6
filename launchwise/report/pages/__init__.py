"""Pages of the whole report: the front page, the GPUs, health of the measurements."""
