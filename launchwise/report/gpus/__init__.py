"""The page of the GPUs, gpus.html."""
