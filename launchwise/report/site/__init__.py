"""Pages as a folder of files: reading, order of sections, HTML."""
