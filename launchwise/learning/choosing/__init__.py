"""How the answering model is chosen from training rows alone, and when the usual choice stays."""
