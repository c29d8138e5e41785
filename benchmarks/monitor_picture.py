"""Draw docs/assets/monitor.png: the page of `psconrl monitor` of a machine, as docs/watching.md has it. Needs Chromium.

python benchmarks/monitor_picture.py
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import psconrl

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "monitor.png"
ROUNDS = 5000
WIDTH, HEIGHT = 1000, 820  # the numbers and the first two charts
COLOURS = 64
PROFIT_AND_NOISE = {
    ("fine", "fast"): (10, 8),
    ("fine", "slow"): (6, 3),
    ("worn", "fast"): (4, 9),
    ("worn", "slow"): (3, 5),
}


def write_log(path: Path) -> None:
    """Let an agent learn the machine, and write its log."""
    rng = np.random.default_rng(1)
    learner = psconrl.PSConRL(2, 3, thresholds=[4.0], optimistic_cost=-10.0, seed=0)
    agent = psconrl.LabelledAgent(learner, ["fine", "worn"], ["fast", "slow", "repair"])
    learner.watch(psconrl.CSVLog(str(path), ["loss", "noise"], states=agent.states, actions=agent.actions))
    state = "fine"
    for _ in range(ROUNDS):
        action = agent.act(state)
        profit, noise = PROFIT_AND_NOISE.get((state, action), (-2, 1))
        if action == "repair":
            following = "fine" if state == "fine" or rng.random() < 0.9 else "worn"
        else:
            following = "worn" if state == "fine" and rng.random() < {"fast": 0.3, "slow": 0.05}[action] else state
        agent.observe(action, following, [-profit, noise])
        state = following


def main() -> None:
    """Write the log and the page, and take a picture of it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "learning.csv")
        page, shot = folder / "learning.html", folder / "shot.png"
        subprocess.run(["psconrl", "monitor", str(folder / "learning.csv"), "--once", str(page)], check=True)
        options = [f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={folder / 'profile'}", f"--screenshot={shot}"]
        command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", *options, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        with Image.open(shot) as picture:
            picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
