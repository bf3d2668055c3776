"""The oil rigs example: a simulated fleet of pumps that sends records, and a dashboard of the pipeline."""
