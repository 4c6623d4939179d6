"""The report's figures and tables as files for papers and talks."""
