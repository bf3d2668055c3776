"""`python -m bench` runs the benchmarks."""

import sys

from bench.command_line import main

sys.exit(main())
