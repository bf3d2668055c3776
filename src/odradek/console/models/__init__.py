"""What the watches keep of a cluster: samples, traffic, pipelines, pumps. Pure and bounded."""
