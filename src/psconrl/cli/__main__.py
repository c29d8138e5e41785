"""``python -m psconrl.cli``."""

from psconrl.cli import main

main()
