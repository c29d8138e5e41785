"""How often 95% intervals over runs cover the mean: ``python benchmarks/coverage.py``.

The first table compares intervals of the mean of one agent's runs: the percentile bootstrap, BCa (Efron 1987) and
Student's t, with 2,000 resamples and 4,000 samples for every number of runs. Each entry has the share of samples whose
interval covers the true mean, in %, and the median length of the intervals. A *lost run* is one in ten that costs ten
times as much as the others.

The second table has interquartile means over several environments, whose levels are spread from 0 to 5 standard
deviations: the stratified bootstrap that draws n of the n runs of each environment, as rliable does, and the one that
draws n - 1, as ``report/aggregates.py`` does; 500 resamples and 300 samples, so that shares are known to 2 or 3%.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from psconrl.base.arrays import Floats
from psconrl.report.aggregates import middle_mean
from psconrl.report.print_table import markdown_table

RUNS = (2, 3, 5, 10, 30)
RESAMPLES, SAMPLES = 2000, 4000
FEW_RESAMPLES, FEW_SAMPLES = 500, 300
ENVIRONMENTS = (1, 3, 10)
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0),
    "lognormal, sigma 1": (lambda rng, size: rng.lognormal(size=size), np.exp(0.5)),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
    "one lost run in ten": (lambda rng, size: rng.normal(1, 0.2, size=size) + 9 * (rng.random(size) < 0.1), 1.9),
    "t with 3 degrees of freedom": (lambda rng, size: rng.standard_t(3, size=size), 0.0),
}


def main() -> None:
    """Print both tables."""
    rng = np.random.default_rng(1)
    rows = []
    for name, (draw, mean) in DISTRIBUTIONS.items():
        for n in RUNS:
            x = draw(rng, (n, SAMPLES))
            methods = (percentile(x), bca(x) if n > 2 else None, students(x))
            rows.append([name, n, *("" if ends is None else _entry(*ends, mean) for ends in methods)])
    print(markdown_table(["values", "runs", "percentile bootstrap", "BCa", "Student's t"], rows), end="\n\n")
    rng = np.random.default_rng(2)
    rows = []
    for name in ("normal", "lognormal, sigma 1"):
        for count in ENVIRONMENTS:
            level = np.linspace(0, 5, count)[:, None]
            true = float(middle_mean((DISTRIBUTIONS[name][0](rng, (count, 400_000)) + level).ravel()))
            for n in RUNS[1:]:
                covered = [interquartile(rng, DISTRIBUTIONS[name][0], level, n, k, true) for k in (n, n - 1)]
                rows.append([name, count, n, *(f"{100 * share:.0f}" for share in covered)])
    print(markdown_table(["values", "environments", "runs", "n of n", "n - 1 of n"], rows))


def percentile(x: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the percentile bootstrap for samples in columns, (n, samples)."""
    low, high = np.quantile(_weights(len(x)) @ x, [0.025, 0.975], axis=0)
    return low, high


def bca(x: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the bias-corrected and accelerated bootstrap."""
    mean, z = x.mean(axis=0), np.sort(_weights(len(x)) @ x, axis=0)
    below = np.sum(z < mean - 1e-12, axis=0) + 0.5 * np.sum(np.abs(z - mean) <= 1e-12, axis=0)
    bias = norm.ppf(np.clip(below / RESAMPLES, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    deviation = x - mean
    acceleration = (deviation**3).sum(axis=0) / 6 / (deviation**2).sum(axis=0) ** 1.5
    ends = []
    for tail in (0.025, 0.975):
        moved = bias + norm.ppf(tail)
        quantile = norm.cdf(bias + moved / (1 - acceleration * moved))
        at = np.clip((quantile * (RESAMPLES - 1)).round().astype(int), 0, RESAMPLES - 1)
        ends.append(np.take_along_axis(z, at[None], 0)[0])
    return ends[0], ends[1]


def students(x: Floats) -> tuple[Floats, Floats]:
    """Return the ends of Student's t interval, for two runs too."""
    n, mean = len(x), x.mean(axis=0)
    half = student.ppf(0.975, n - 1) * x.std(axis=0, ddof=1) / np.sqrt(n)
    return mean - half, mean + half


def interquartile(rng: np.random.Generator, draw: Draw, level: Floats, n: int, k: int, true: float) -> float:
    """Return the share of intervals of the interquartile mean that cover, with k of n runs in a resample."""
    covered, count = 0, len(level)
    for _ in range(FEW_SAMPLES):
        x = draw(rng, (count, n)) + level
        picked = rng.integers(n, size=(FEW_RESAMPLES, count, k))
        means = middle_mean(x[np.arange(count)[None, :, None], picked].reshape(FEW_RESAMPLES, -1))
        low, high = np.quantile(means, [0.025, 0.975])
        covered += bool(low <= true <= high)
    return covered / FEW_SAMPLES


def _weights(n: int) -> Floats:
    return np.asarray(np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n)


def _entry(low: Floats, high: Floats, mean: float) -> str:
    return f"{100 * np.mean((low <= mean) & (mean <= high)):.1f} ({np.median(high - low):.2f})"


if __name__ == "__main__":
    main()
