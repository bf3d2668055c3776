"""Oil rigs: a fleet of simulated pumps that sends records, and the dashboard of the pipeline that reads them."""
