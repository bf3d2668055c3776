"""What a pipeline is and whether it can run; pure Python, without Spark."""
