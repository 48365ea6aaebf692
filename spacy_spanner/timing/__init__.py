"""Measurements of pipelines on this machine: throughput, latency, memory and start-up."""
