"""GPUs: profiles, datasheets, and the machine that the cost model sees."""
