"""The front page, index.html."""
