"""``launchwise predict``: predicted run times of one problem on any GPU."""
