"""Analysis of predictions: scores broken down, kinds of errors, calibration, HTML pages."""
