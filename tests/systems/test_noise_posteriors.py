"""Posteriors of parameters of noise that has a factor, is a joint table or depends on noise, against quadrature."""

import itertools

import numpy as np
import pytest
from scipy.special import roots_legendre

import psconrl
from noise_rounds import simulated
from psconrl.errors import AgentError
from psconrl.learning.posterior.collapsed_moves import CollapsedMoves
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma, Weights
from psconrl.systems.system import System

NODES = 48  # of one or two parameters: they lie closer together than half a standard deviation of the posteriors here
FEW_NODES = 16  # of three
LARGEST_RATE = 12.0
BURN_IN = 50


def described(noise, step, states, **more):
    """A system whose next state shows some of its noise."""
    return System(
        state=states, action={"fast": [0, 1]}, noise=noise, step=step, minimise="late",
        costs={"late": " + ".join("(sky == 'wet')" if v == "sky" else v for name in noise for v in name.split(", ")),
               "speed": "fast"}, **more,
    )  # fmt: skip


def nodes(prior, number):
    """Points and weights for integrals over one parameter, a probability or a rate, times its prior density."""
    x, w = roots_legendre(number)
    if isinstance(prior, Beta):
        p = (x + 1) / 2
        return [np.array([q]) for q in p], w * p ** (prior.yes - 1) * (1 - p) ** (prior.no - 1)
    if isinstance(prior, Gamma):
        rate = (x + 1) * LARGEST_RATE / 2
        return [np.array([q]) for q in rate], w * rate ** (prior.shape - 1) * np.exp(-prior.rate * rate)
    assert isinstance(prior, Weights), "free probabilities of three values at most"
    p = (x + 1) / 2
    found, weights = [], []
    for (a, u), (b, v) in itertools.product(zip(p, w, strict=True), repeat=2):  # a, then b of the rest
        shares = np.array([a, (1 - a) * b, (1 - a) * (1 - b)])
        found.append(shares)
        weights.append(u * v * (1 - a) * np.prod(shares ** (prior.weights - 1)))
    return found, np.array(weights)


def exact_means(system, seen):
    """Posterior means by quadrature over all parameters of the probability of everything that was seen."""
    structure, words = system.structure, system.vocabulary()
    possible = structure.randomness.possible()
    sets = {}
    for pair, following, noise in seen:
        fits = possible[structure.contexts[pair]] & (structure.successors[pair] == following)
        for name, value in (noise or {}).items():
            fits = fits & (words.outcomes[name] == value)
        key = int(structure.contexts[pair]), fits.tobytes()
        sets[key] = fits, sets.get(key, (fits, 0))[1] + 1
    priors = structure.randomness.priors
    number = NODES if len(priors) < 3 and not any(isinstance(p, Weights) for p in priors.values()) else FEW_NODES
    axes = {name: nodes(prior, number) for name, prior in priors.items()}
    total, sums = 0.0, dict.fromkeys(priors, 0.0)
    for places in itertools.product(*(range(len(points)) for points, _ in axes.values())):
        parameters = {name: axes[name][0][k] for name, k in zip(axes, places, strict=True)}
        weight = np.prod([axes[name][1][k] for name, k in zip(axes, places, strict=True)])
        table = structure.table(parameters)
        logs = sum(n * np.log(max(table[g, fits].sum(), 1e-300)) for (g, _), (fits, n) in sets.items())
        weight *= np.exp(logs + len(seen))
        total += weight
        sums = {name: sums[name] + weight * parameters[name] for name in priors}
    return {name: sums[name] / total for name in priors}


def need_posterior(system, truth, full, rounds=25, seed=0, report=()):
    counts, seen = simulated(system, truth, rounds, seed, report)
    exact = exact_means(system, seen)
    belief, rng = Structured(system.structure), np.random.default_rng(seed)
    number, found = (3000 if full else 300), {name: [] for name in exact}
    for k in range(number + BURN_IN):
        belief.sample(counts, rng)
        for name in exact:
            if k >= BURN_IN:
                found[name].append(belief.parameters[name].copy())
    estimates = Structured(system.structure).estimates(counts)
    for name, mean in exact.items():
        drawn = np.array(found[name])
        # Consecutive draws are correlated, by less than 0.7 in these cases: six standard errors of a sixth as many.
        error = 6 * drawn.std(axis=0) / np.sqrt(number / 6)
        np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), error)
        assert drawn.std() > 0.01  # it is not known
        own = [one for key, one in estimates.items() if key == name or key.startswith(name + "=")]
        np.testing.assert_allclose([one.mean for one in own], mean, atol=float(error.max()))


TIMES = "0.3 if fast else 1"

FACTORS = {
    "bernoulli": (Bernoulli(Beta(2, 1), times=TIMES), 0.6),
    "bernoulli with a condition": (Bernoulli(Beta(2, 1), when="a < 2", times="0.2 + 0.3 * fast"), 0.6),
    "binomial": (Binomial("2 - (a == 2)", Beta(1, 2), times=TIMES), 0.5),
    "geometric": (Geometric(Beta(1, 1), most=2, times=TIMES), 0.7),
    "geometric without factor": (Geometric(Beta(1, 1), most=2), 0.3),
    "nothing at all": (Bernoulli(Beta(2, 1), times="0 if fast else 0.5"), 0.6),
}


@pytest.mark.parametrize("case", FACTORS)
def test_a_probability_with_a_factor_has_the_posterior_of_quadrature(case, full):
    noise, truth = FACTORS[case]
    need_posterior(described({"w": noise}, {"a": "w"}, {"a": range(3)}), {"w": np.array([truth])}, full)


def test_a_probability_with_a_factor_that_is_partly_hidden(full):
    system = described({"w": Binomial(2, Beta(1, 2), times=TIMES)}, {"a": "min(w, 1)"}, {"a": range(2)})
    need_posterior(system, {"w": np.array([0.5])}, full)


def test_factors_of_one_are_conjugate():
    one = described({"w": Bernoulli(Beta(2, 1), times="fast")}, {"a": "w"}, {"a": range(2)})
    two = described({"w": Bernoulli(Beta(2, 1), times="0.5 + 0.5 * fast")}, {"a": "w"}, {"a": range(2)})
    assert one.structure.randomness.is_conjugate
    assert not two.structure.randomness.is_conjugate
    counts, _ = simulated(one, {"w": np.array([0.6])}, 40, 1)
    found, pairs = Structured(one.structure).estimates(counts)["w"], counts.pairs
    yes = counts.tally.times[(counts.tally.numbers % 2 == 1)].sum()  # of the rounds with the factor 1
    assert found.mean == pytest.approx((2 + yes) / (3 + pairs[:, 1].sum()), rel=1e-12)


JOINT = {"n, sky": Joint([(0, "dry"), (1, "dry"), (1, "wet")], prior=[1, 2, 1])}


@pytest.mark.parametrize("report", [(), ("sky",), ("n",), ("n", "sky")])
def test_a_joint_table_is_learned_from_what_is_seen_of_it(report, full):
    system = described(JOINT, {"a": "max(n, a * fast)"}, {"a": range(2)})
    truth = {"n, sky": np.array([0.2, 0.3, 0.5])}
    need_posterior(system, truth, full, rounds=15, report=report)


DEPENDENT = {
    "thinned counts": (
        {"come": Poisson(Gamma(2, 1), most=3), "stay": Binomial("come", Beta(1, 1))}, {"a": "stay"}, {"a": range(4)},
        {"come": [2.0], "stay": [0.4]},
    ),
    "a hidden storm": (
        {"storm": Bernoulli(Beta(2, 2)), "due": Bernoulli("0.8 if storm else 0.1")}, {"a": "due"}, {"a": range(2)},
        {"storm": [0.3]},
    ),
    "a hidden storm behind an unknown": (
        {"storm": Bernoulli(0.4), "due": Bernoulli(Beta(), times="1 if storm else 0.2")},
        {"a": "due + storm * fast"}, {"a": range(3)}, {"due": [0.6]},
    ),
    "a chain of three": (
        {"c": Binomial("1 + b", Beta(2, 1)), "b": Binomial("a0", 0.5), "a0": Bernoulli(Beta(1, 2))},
        {"a": "c"}, {"a": range(3)}, {"c": [0.6], "a0": [0.4]},
    ),
    "a joint table under a storm": (
        {"storm": Bernoulli("0.2 + 0.1 * a"), "n, sky": Joint(JOINT["n, sky"].value_list, prior=1),
         "lost": Binomial("n + storm", 0.5)}, {"a": "lost"}, {"a": range(3)}, {"n, sky": [0.2, 0.3, 0.5]},
    ),
    "values that depend on values": (
        {"w": Categorical([0, 1, 2], prior=1), "v": Categorical({0: "0.9 if w == 1 else 0.2",
                                                                 1: "0.1 if w == 1 else 0.8"})},
        {"a": "min(w, 1) + v"}, {"a": range(3)}, {"w": [0.3, 0.5, 0.2]},
    ),
    "a condition": (
        {"open": Bernoulli(Beta(2, 2)), "come": Bernoulli(Beta(1, 1), when="open")}, {"a": "come"}, {"a": range(2)},
        {"open": [0.7], "come": [0.5]},
    ),
    "two children": (
        {"storm": Bernoulli(Beta(1, 1)), "x": Bernoulli("0.7 if storm else 0.2"), "y": Bernoulli("0.4 + 0.4 * storm")},
        {"a": "x if fast else y"}, {"a": range(2)}, {"storm": [0.5]},
    ),
}  # fmt: skip


LONG = ("thinned counts", "a chain of three")


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.full] * (case in LONG)) for case in DEPENDENT])
def test_noise_that_depends_on_hidden_noise_has_the_posterior_of_quadrature(case, full):
    noise, step, states, truth = DEPENDENT[case]
    need_posterior(described(noise, step, states), {k: np.array(v) for k, v in truth.items()}, full)


@pytest.mark.parametrize("report", [pytest.param(("come",), marks=pytest.mark.full), ("stay",), ("come", "stay")])
def test_noise_that_depends_on_noise_is_learned_from_reports(report, full):
    noise, _, states, truth = DEPENDENT["thinned counts"]
    system = described(noise, {"a": "min(stay, 1)"}, states)
    need_posterior(system, {k: np.array(v) for k, v in truth.items()}, full, report=report)


def by_hand(p, q, n):
    """The probability that 0 or more of up to one arrival stays: an arrival comes with p and stays with q."""
    return {1: p * q, 0: 1 - p * q}[n]


def test_thinned_arrivals_by_hand(full):
    """Of what stays only the product of both probabilities is known: their posterior on a grid, in plain Python."""
    system = described(
        {"come": Bernoulli(Beta(2, 1)), "stay": Binomial("come", Beta(1, 2))}, {"a": "stay"}, {"a": range(2)}
    )
    _, seen = simulated(system, {"come": np.array([0.7]), "stay": np.array([0.4])}, 30, 3)
    grid = (np.arange(100) + 0.5) / 100
    total, sums = 0.0, np.zeros(2)
    ones = sum(following for _, following, _ in seen)
    for p, q in itertools.product(grid, grid):
        weight = p * (1 - q) * by_hand(p, q, 1) ** ones * by_hand(p, q, 0) ** (30 - ones)
        total, sums = total + weight, sums + weight * np.array([p, q])
    exact = exact_means(system, seen)
    np.testing.assert_allclose([exact["come"][0], exact["stay"][0]], sums / total, rtol=1e-3)
    need_posterior(system, {"come": np.array([0.7]), "stay": np.array([0.4])}, full, rounds=30, seed=3)


@pytest.mark.parametrize("rounds", [pytest.param(100, marks=pytest.mark.full), 5000])
def test_parameters_of_which_only_the_product_is_known_move_along_its_curve(rounds, full):
    system = described(
        {"come": Bernoulli(Beta(2, 1)), "stay": Binomial("come", Beta(1, 2))}, {"a": "stay"}, {"a": range(2)}
    )
    counts, seen = simulated(system, {"come": np.array([0.7]), "stay": np.array([0.4])}, rounds, 3)
    ones = sum(following for _, following, _ in seen)
    # With x = p q, the density of p and x is p (1 - q) / p = 1 - x / p, times the likelihood of x.
    p, x = np.meshgrid((np.arange(800) + 0.5) / 800, (np.arange(800) + 0.5) / 800)
    logs = ones * np.log(x) + (rounds - ones) * np.log1p(-x)
    weights = np.where(x < p, np.exp(logs - logs.max()) * (1 - np.minimum(x / p, 1)), 0.0)
    mean = (weights * p).sum() / weights.sum()
    belief, rng = Structured(system.structure), np.random.default_rng(1)
    number = 3000 if full else 400
    drawn = []
    for k in range(number + BURN_IN):
        belief.sample(counts, rng)
        if k >= BURN_IN:
            drawn.append(belief.parameters["come"][0])
    spread = np.sqrt((weights * (p - mean) ** 2).sum() / weights.sum())
    # Correlated by less than 0.95 from one draw to the next: six standard errors of a fortieth as many.
    assert np.mean(drawn) == pytest.approx(mean, abs=6 * spread / np.sqrt(number / 40))
    assert np.std(drawn) == pytest.approx(spread, rel=0.35)


def test_two_parameters_move_together_and_against_each_other(monkeypatch):
    system = described(
        {"come": Bernoulli(Beta(2, 1)), "stay": Binomial("come", Beta(1, 2))}, {"a": "stay"}, {"a": range(2)}
    )
    moves, tried = CollapsedMoves(system.structure.randomness, []), []

    def refused(parameters):
        tried.append(np.log([parameters["come"][0] / 0.7, parameters["stay"][0] / 0.4]))
        return -float(len(tried) > 1)  # the first is where it starts

    monkeypatch.setattr(moves, "_log_density", lambda parameters: refused(parameters) * 1e9)
    rng, steps = np.random.default_rng(0), []
    for _ in range(20):
        tried.clear()
        moves.moved({"come": np.array([0.7]), "stay": np.array([0.4])}, rng)
        steps += tried[1:]
    come, stay = np.array(steps).T
    both = (np.abs(come) > 1e-9) & (np.abs(stay) > 1e-9)
    against = both & np.isclose(come, -stay)
    together = both & np.isclose(come, stay)
    assert against.any()
    assert together.any()
    assert not both.all()
    np.testing.assert_array_equal(both, against | together)


def test_what_is_not_needed_is_not_drawn():
    """Where the arrivals are seen, but not who stays, the posterior of the arrivals is conjugate."""
    noise = {"come": Bernoulli(Beta(1, 1)), "stay": Binomial("come", Beta(1, 1))}
    system = described(noise, {"a": "come"}, {"a": range(2)})
    counts, _ = simulated(system, {"come": np.array([0.6]), "stay": np.array([0.5])}, 30, 2)
    estimates = Structured(system.structure).estimates(counts)
    assert estimates["come"].mean == pytest.approx((1 + (counts.tally.times[counts.tally.numbers % 2 == 1]).sum()) / 32)
    assert estimates["stay"].mean == pytest.approx(0.5, rel=1e-12)
    assert (estimates["come"].observations, estimates["stay"].observations) == (30, 0)


def ward():
    return System(
        state={"beds": range(4)}, action={"staff": [0, 1]}, minimise="waiting", limits=["hours <= 0.6"],
        noise={
            "come, sky": Joint(itertools.product(range(3), ["wet", "dry"]), prior=1),
            "urgent": Binomial("come", Beta(1, 1)),
            "leave": Binomial("beds", Beta(1, 1), times="1 if staff else 0.6"),
        },
        step={"beds": "min(beds - leave + urgent, 3)"},
        costs={"waiting": "beds + (sky == 'wet')", "hours": "staff"},
    )  # fmt: skip


def played(agent, rounds, seed, report=True):
    rng, state = np.random.default_rng(seed), {"beds": 0}
    joint = [0.1, 0.4, 0.1, 0.2, 0.15, 0.05]
    values = ward().source.noise["come, sky"].value_list
    for _ in range(rounds):
        action = agent.act(state)
        come, sky = values[rng.choice(6, p=joint)]
        urgent = int(rng.binomial(come, 0.3))
        leave = int(rng.binomial(state["beds"], 0.5 * (1 if action["staff"] else 0.6)))
        state = {"beds": min(state["beds"] - leave + urgent, 3)}
        noise = {"come": come, "sky": sky, "urgent": urgent, "leave": leave} if report else {"sky": sky}
        agent.observe(action, state, noise=noise)
    return state


@pytest.mark.parametrize("report", [True, False])
def test_an_agent_learns_and_is_continued_bit_for_bit(report, tmp_path):
    agent = psconrl.PSConRL.of(ward(), seed=1)
    played(agent, 120, 2, report)
    agent.save(tmp_path / "agent.npz")
    other = psconrl.load_agent(tmp_path / "agent.npz")
    assert repr(other.estimates()) == repr(agent.estimates())
    assert not agent.doubts()
    for one in (agent, other):
        played(one, 60, 3, report)
    for name, value in agent.belief.parameters.items():
        np.testing.assert_array_equal(other.belief.parameters[name], value)
    names = {name for name in agent.estimates() if name.startswith("come, sky=")}
    assert names == {f"come, sky=({n}, {sky})" for n in range(3) for sky in ("wet", "dry")}


def test_wrong_reports_of_joint_noise_are_refused():
    agent = psconrl.PSConRL.of(ward(), seed=1)
    action = agent.act({"beds": 0})
    with pytest.raises(AgentError, match="noise: 'sky' must be one of its values; got 3"):
        agent.observe(action, {"beds": 0}, noise={"sky": 3})
    with pytest.raises(AgentError, match="'come, sky'"):
        agent.observe(action, {"beds": 0}, noise={"come, sky": (0, "wet")})


def test_safe_exploration_refuses_noise_that_depends_on_noise():
    system = described({"come": Bernoulli(Beta()), "stay": Binomial("come", 0.5)}, {"a": "stay"}, {"a": range(2)},
                       limits=["speed <= 0.5"])  # fmt: skip
    said = "safe exploration needs noises that do not depend on each other; 'stay' depends on 'come'"
    with pytest.raises(AgentError, match=said):
        psconrl.agents.SafeStart.of(system, baseline=np.eye(2)[[0, 0]], slack=0.1)
