"""The engines that run a pipeline: micro-batches, real-time mode, and one batch over a range."""
