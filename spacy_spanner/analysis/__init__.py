"""Looking at predictions: where they are right, where they are wrong."""
