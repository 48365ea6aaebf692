"""How fast pipelines are on this machine: throughput, latency, memory and start-up."""
