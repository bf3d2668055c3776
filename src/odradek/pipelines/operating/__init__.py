"""Pipelines as processes: started, watched, stopped, restarted; their checkpoints, and what those can carry."""
