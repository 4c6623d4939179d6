"""Choice of the answering model from training rows alone, and rule for the usual choice."""
