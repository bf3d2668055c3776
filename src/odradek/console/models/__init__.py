"""What the watches keep of a cluster: samples, pipelines, pumps. Pure and bounded."""
