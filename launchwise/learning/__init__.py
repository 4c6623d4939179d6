"""From rows to recommendations: cleaning, splits, features, models, searches, evaluation."""
