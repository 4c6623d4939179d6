"""The page of a study beside its publication, paper.html."""
