"""``python -m psconrl`` is ``psconrl``."""

from psconrl.cli import main

if __name__ == "__main__":
    main()
