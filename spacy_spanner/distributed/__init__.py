"""Past one process: annotation in shards on several engines, and training on several ranks."""
