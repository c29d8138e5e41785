"""Draw docs/assets/example1.svg, the paper's Example 1: python benchmarks/example_picture.py."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from psconrl.report.example_diagram import draw_example

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "example1.svg"


def main() -> None:
    figure = Figure(figsize=(4.2, 2.4))
    draw_example(figure.subplots())
    with mpl.rc_context({"svg.hashsalt": "example1"}):  # the same file whenever it is drawn
        figure.savefig(TARGET, bbox_inches="tight", metadata={"Date": None})
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
