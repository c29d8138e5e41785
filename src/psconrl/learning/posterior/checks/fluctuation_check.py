r"""Alternatives to independent rounds: a noise that varies more than its family, in fits, or together with another.

The numerators of these E-values are predictions of the results of rounds (``round_results``), made from the plug-in
distribution :math:`\hat p(w \mid g)` of the joint outcomes: that of parameters which were estimated before. A noise
with value :math:`v(w)` is tilted,

.. math:: \hat p_\eta(w \mid g) = \hat p(w \mid g)\, e^{\eta v(w)} / Z_g(\eta),

which makes another probability of a Bernoulli or binomial noise, another rate of a Poisson noise or of an event.

- **Dispersion.** In every round :math:`\eta \sim N(c_g, \sigma^2)` again: beyond the binomial or the Poisson
  distribution. Gauss-Hermite sums stand for the integral over :math:`\eta`. The centre
  :math:`c_g = -\sigma^2 \kappa_3 / (2 \kappa_2)`, with cumulants of v, keeps the mean to second order.
- **Fits.** The same, but :math:`\eta` lasts: from one round to the next it is drawn again with probability h only.
  Where the order of rounds is not known, it lasts for all rounds since the last look, and is then drawn again.
- **Correlation** of two noises: :math:`\hat p(w \mid g)\, r_g(v_1(w), v_2(w))`, where r is an interaction
  :math:`e^{\kappa z_1 z_2}` of centred ranks, fitted to the marginal distributions (iterative proportional fitting).

A mean over several :math:`\sigma` and h, or :math:`\kappa`, is the numerator. The denominator is the largest likelihood
over all unknown parameters, as in ``joint_check``.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import distributions, fields, read_fields, reals
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.checks.dependence import log_sum_exp
from psconrl.learning.posterior.checks.round_results import Cells
from psconrl.learning.posterior.noise_families import raised_logs
from psconrl.model.matrix_product import product
from psconrl.systems.categorical import Categorical
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import RoundNoise
from psconrl.systems.structure import Structure

DISPERSION, FITS = "(dispersion)", "(fits)"  # causes of a doubt
SPREADS = np.array([0.15, 0.4, 0.9, 2.0])  # sigma, in standard deviations of the noise
LEAST_DEVIATION = 0.5  # that counts for the spreads
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
SHARES = _WEIGHTS / _WEIGHTS.sum()
INTERACTIONS = np.array([-2.5, -1.0, -0.4, 0.4, 1.0, 2.5])  # kappa, of ranks with variance 1
DRAWN_AGAIN = np.array([0.1, 0.02])  # h
STRONGEST = 30.0  # logarithm of an interaction: ranks of rare values are far from the others
FITTINGS = 12  # of an interaction to the marginal distributions
MOST_PAIRS = 100  # of noises that are tested
MOST_TILTED = 64  # values of a noise that have tilts of their own
MOST_INTERACTING = 4_000_000  # numbers of interactions that are kept
MOST_CONTEXTS = 1000  # in which the standard deviation of a noise is taken
NO_VARIANCE = 1e-12  # less counts as none
LEAST_PREDICTED = 1e-300  # probability


class Tilted(NamedTuple):
    """A number of every joint outcome: the place of the value of a noise, or whether one of some events happens."""

    name: str
    of_outcome: Ints
    size: int
    may_disperse: bool


class FluctuationCheck:
    """The tests of all noises, and of pairs of them."""

    def __init__(self, structure: Structure, names: tuple[str, ...]) -> None:
        self._structure = structure
        self.features = _features(structure, names)
        some = [f for f in self.features if isinstance(structure.randomness, RoundNoise)]
        self.pairs = list(itertools.combinations(some, 2))[:MOST_PAIRS]
        n = SPREADS.size
        self._shares = np.tile(SHARES, (len(self.features), DRAWN_AGAIN.size, n, 1))  # of eta in fits, by noise
        self._logs: dict[tuple[str, str], Floats] = {}
        for f in self.features:
            self._logs[f.name, FITS] = np.zeros(DRAWN_AGAIN.size * n)
            if f.may_disperse:
                self._logs[f.name, DISPERSION] = np.zeros(n)
        for one, two in self.pairs:
            self._logs[one.name, two.name] = np.zeros(INTERACTIONS.size)
        self._interacting: dict[tuple[str, str], dict[int, Floats]] = {}  # by pair and context, under the plug-in
        self._sigma: dict[str, Floats] = {}  # the same of spreads

    @property
    def number(self) -> int:
        """Number of tests."""
        return len(self._logs)

    def plug_in(self, table: Floats) -> None:
        """Take another plug-in (G, W) for the rounds to come."""
        self._interacting = {}
        some = table[:MOST_CONTEXTS]
        for f in self.features:
            marginal = _marginal(some, f.of_outcome, f.size)
            second = _moments(marginal)[1]
            varying = second > NO_VARIANCE
            deviation = float(np.sqrt(second[varying].mean())) if varying.any() else 1.0
            self._sigma[f.name] = SPREADS / max(deviation, LEAST_DEVIATION)

    def add(self, cells: Cells, times: Floats, order: Ints | None, table: Floats) -> None:
        """Add the rounds since the last call, given the plug-in; ``order``: their results, if it is known."""
        if not cells.number:
            return
        contexts, of_cell = np.unique(cells.contexts, return_inverse=True)
        of_result = np.empty(cells.number, dtype=np.int64)
        of_result[cells.result] = of_cell.ravel()
        rows, shares = table[contexts], table[cells.contexts, cells.outcomes]
        tilted = []
        for f in self.features:
            found = self._tilted(f, cells, shares, rows, of_result)
            tilted.append(found)
            if f.may_disperse:
                mixed = raised_logs((found * SHARES).sum(axis=2))
                self._logs[f.name, DISPERSION] += product(np.ascontiguousarray(mixed.T), times)
        for f, logs in zip(self.features, self._in_fits(np.array(tilted), times, order), strict=True):
            self._logs[f.name, FITS] += logs
        for one, two in self.pairs:
            ratios = self._ratios(one, two, contexts, rows)
            own = ratios[of_cell.ravel(), :, one.of_outcome[cells.outcomes], two.of_outcome[cells.outcomes]]
            found = np.array(
                [
                    np.bincount(cells.result, weights=shares * own[:, k], minlength=cells.number)
                    for k in range(len(own.T))
                ]
            )
            self._logs[one.name, two.name] += product(raised_logs(found), times)

    def _tilted(self, f: Tilted, cells: Cells, shares: Floats, rows: Floats, where: Ints) -> Floats:
        """Return the probabilities (R, spreads, nodes) of results under all tilts of a noise."""
        V, places = f.size, np.arange(f.size, dtype=np.float64)
        parts = np.bincount(cells.result * V + f.of_outcome[cells.outcomes], weights=shares, minlength=cells.number * V)
        parts = parts.reshape(-1, V)
        marginal = _marginal(rows, f.of_outcome, V)
        raised = _tilts(marginal, self._sigma[f.name])[..., None] * places
        raised = special.exp_array(np.ascontiguousarray(raised - raised.max(axis=3, keepdims=True)))
        totals = (raised * marginal[:, None, None, :]).sum(axis=3)
        return np.asarray(
            (raised[where] * parts[:, None, None, :]).sum(axis=3) / np.maximum(totals[where], LEAST_PREDICTED)
        )

    def _in_fits(self, tilted: Floats, times: Floats, order: Ints | None) -> Floats:
        """Return what the rounds add to the logarithms (noises, h * spreads) of predictions with tilts that last."""
        tilted = np.maximum(tilted, LEAST_PREDICTED)
        if order is None:
            logs = np.tensordot(raised_logs(tilted), times, axes=([1], [0]))[:, None] + raised_logs(self._shares)
            self._shares = np.broadcast_to(SHARES, self._shares.shape).copy()
            top = logs.max(axis=3, keepdims=True)
            sums = special.exp_array(np.ascontiguousarray(logs - top)).sum(axis=3)
            return np.asarray(top[..., 0] + raised_logs(sums)).reshape(len(tilted), -1)
        shares, again = self._shares, DRAWN_AGAIN[:, None, None]
        back, predicted = again * SHARES, np.empty((order.size, *shares.shape[:3]))
        for t, r in enumerate(order.tolist()):
            shares = shares * tilted[:, None, r]
            shares.sum(axis=3, out=predicted[t])
            shares = (1.0 - again) * (shares / predicted[t][..., None]) + back
        self._shares = shares
        return np.asarray(raised_logs(predicted).sum(axis=0)).reshape(len(tilted), -1)

    def _ratios(self, one: Tilted, two: Tilted, contexts: Ints, rows: Floats) -> Floats:
        """Return the interactions (contexts, kappas, V1, V2) of two noises."""
        kept, size = self._interacting.setdefault((one.name, two.name), {}), one.size * two.size
        if (len(kept) + contexts.size) * INTERACTIONS.size * size > MOST_INTERACTING:
            kept.clear()
        new = np.array([k for k, g in enumerate(contexts.tolist()) if g not in kept], dtype=np.int64)
        if new.size:
            both = _marginal(rows[new], one.of_outcome * two.size + two.of_outcome, size)
            found = _interactions(both.reshape(-1, one.size, two.size))
            kept.update(zip(contexts[new].tolist(), found, strict=True))
        return np.array([kept[g] for g in contexts.tolist()])

    def evidence(self, least: float) -> dict[str, dict[str, float]]:
        """Return log E by noise and cause, given the logarithm of the denominator."""
        found: dict[str, dict[str, float]] = {}
        for (name, cause), logs in self._logs.items():
            found.setdefault(name, {})[cause] = log_sum_exp(logs) - special.log(float(logs.size)) - least
        return found

    def state(self) -> dict[str, Any]:
        """Return the logarithms of the numerators."""
        logs = {f"{name}|{cause}": logs for (name, cause), logs in self._logs.items()}
        return {"logs": logs, "shares": self._shares}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        logs = fields({f"{name}|{cause}": reals(logs.shape) for (name, cause), logs in self._logs.items()})
        saved = read_fields(state, {"logs": logs, "shares": distributions(self._shares.shape)})
        self._logs = dict(zip(self._logs, saved["logs"].values(), strict=True))
        self._shares = saved["shares"]


def _features(structure: Structure, names: tuple[str, ...]) -> list[Tilted]:
    """Return what may fluctuate."""
    randomness, W = structure.randomness, structure.randomness.n_outcomes
    if not isinstance(randomness, RoundNoise):
        assert isinstance(randomness, EventClock)
        sets = [(e,) for e in range(len(names))] + list(itertools.combinations(sorted(randomness.keys), 2))[:MOST_PAIRS]
        return [
            Tilted(" and ".join(names[e] for e in some), np.isin(np.arange(W), some).astype(np.int64), 2, False)
            for some in sets
        ]
    found = []
    places = np.unravel_index(np.arange(W), randomness.sizes)
    for k, (name, noise) in enumerate(randomness.noises.items()):
        if randomness.sizes[k] > 1:
            free = isinstance(noise, Categorical) and name in randomness.keys
            size = min(randomness.sizes[k], MOST_TILTED)
            found.append(Tilted(name, places[k] * size // randomness.sizes[k], size, size > 2 and not free))
    return found


def _marginal(rows: Floats, of_outcome: Ints, size: int) -> Floats:
    """Return the distributions (contexts, V) of a number, given those of the joint outcomes (contexts, W)."""
    n = len(rows)
    codes = (np.arange(n)[:, None] * size + of_outcome).ravel()
    return np.bincount(codes, weights=rows.ravel(), minlength=n * size).reshape(n, size).astype(np.float64)


def _moments(marginal: Floats) -> tuple[Floats, Floats, Floats]:
    """Return means and the second and third central moments of distributions (contexts, V)."""
    places = np.arange(marginal.shape[1], dtype=np.float64)
    mean = product(marginal, places)
    away = places - mean[:, None]
    return mean, (marginal * away**2).sum(axis=1), (marginal * away**3).sum(axis=1)


def _tilts(marginal: Floats, sigma: Floats) -> Floats:
    """Return the tilts (contexts, spreads, nodes) of distributions (contexts, V)."""
    _, second, third = _moments(marginal)
    skew = np.where(second > NO_VARIANCE, third / np.maximum(second, NO_VARIANCE), 0.0)
    return np.asarray(sigma[:, None] * NODES - 0.5 * (sigma**2)[:, None] * skew[:, None, None])


def _interactions(both: Floats) -> Floats:
    """Return factors (n, kappas, V1, V2) of joint distributions (n, V1, V2) that keep their marginal distributions.

    The last fitting is to the first noise, so that probabilities sum to one exactly.
    """
    first, second = both.sum(axis=2), both.sum(axis=1)
    ranks = []
    for p in (first, second):
        z = np.cumsum(p, axis=1) - 0.5 * p - 0.5
        scale = np.sqrt((p * z**2).sum(axis=1, keepdims=True))
        ranks.append(np.where(scale > NO_VARIANCE, z / np.maximum(scale, NO_VARIANCE), 0.0))
    exponents = INTERACTIONS[:, None, None] * ranks[0][:, None, :, None] * ranks[1][:, None, None, :]
    exponents = np.clip(exponents, -STRONGEST, STRONGEST)
    factors = special.exp_array(np.ascontiguousarray(exponents))
    both, first, second = both[:, None], first[:, None], second[:, None]
    for _ in range(FITTINGS):
        factors = factors * (second / np.maximum((both * factors).sum(axis=2), LEAST_PREDICTED))[:, :, None, :]
        factors = factors * (first / np.maximum((both * factors).sum(axis=3), LEAST_PREDICTED))[..., None]
    return factors
