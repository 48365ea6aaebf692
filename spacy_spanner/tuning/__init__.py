"""Settings of a trained component that are chosen on development data: thresholds, temperature, bias."""
