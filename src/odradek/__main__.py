"""The `odradek` command, and `python -m odradek`. Ctrl-C ends it without a traceback while its modules are imported."""

import sys

try:
    from odradek.cli.main import main
except KeyboardInterrupt:
    sys.exit(130)

if __name__ == "__main__":
    main()
