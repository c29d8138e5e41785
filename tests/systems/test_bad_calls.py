"""No mistake in a description or in live use ends in a raw exception: generated calls, and those that once did."""

import warnings
from decimal import Decimal

import numpy as np
import pytest

import psconrl
from bad_calls import (
    NOTHING,
    Live,
    arguments_of_a_clinic,
    arguments_of_a_shop,
    bad_description,
    bad_file,
    built,
    use,
)
from psconrl.errors import AgentError, ModelError, PsconrlError
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

CALLS = 300
LIVE_CALLS = 240


def one_line(call):
    """Return whether a call was answered by an error; it must be ours, and one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except PsconrlError as error:
            said = str(error)
        else:
            return False
    assert said.strip(), "an error without a message"
    assert "\n" not in said
    return True


def test_the_descriptions_without_mistakes_are_good():
    assert psconrl.plan(System(**built(arguments_of_a_shop()))).feasible
    assert psconrl.plan(System(**built(arguments_of_a_clinic())), comes=0.4).feasible
    Live()


@pytest.mark.parametrize("part", range(6))
def test_generated_descriptions(part, tmp_path, capsys):
    refused = sum(
        one_line(lambda seed=seed: use(bad_description(seed), seed, tmp_path)) for seed in range(part, CALLS, 6)
    )
    assert refused > CALLS / 6 * 0.5  # most of them are wrong


def test_generated_files():
    def read(seed):
        system = System.from_dict(bad_file(seed))
        psconrl.plan(system, **dict.fromkeys(system.source.unknown(), 0.4))

    refused = sum(one_line(lambda seed=seed: read(seed)) for seed in range(CALLS // 2))
    assert refused > CALLS // 2 * 0.8


def test_generated_live_calls():
    live = Live()
    refused = sum(one_line(lambda seed=seed: live.mistake(seed)) for seed in range(LIVE_CALLS))
    assert refused > LIVE_CALLS * 0.8
    live.agent.finish()
    rounds = live.agent.rounds
    state = {"shelf": 1}
    action = live.agent.act(state)
    live.agent.observe(action, state)
    live.agent.finish()
    assert live.agent.rounds == rounds + 1


def shop(**changes):
    tree = arguments_of_a_shop() | {"limits": ["lost <= 1"], "cost_names": NOTHING} | changes
    return System(**built(tree))


def treated(step, state, n="x"):
    return System(
        state={"x": state},
        action={"a": 2},
        noise={"w": Binomial(n=n, p=0.3)},
        step=step,
        costs={"c": "x"},
        minimise="c",
    )


def test_a_binomial_noise_with_a_function_that_takes_no_arrays():
    def step(x, a, w):
        if x - w > 1:
            return {"x": x - w}
        return {"x": 2}

    assert treated(step, range(6)).model().n_states == 2  # from 0 to 2, and there it stays
    assert treated(lambda x, w: {"x": np.minimum(np.maximum(x - w, 0) + 1, 3)}, 750).model().n_states == 4


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Bernoulli([0.3, 0.4]), "Bernoulli: p must be a number, an expression or a prior; got [0.3, 0.4]"),
        (lambda: shop(limits=["shelf == 'a' <= 3"]), "a limit must be a text such as"),
        (lambda: shop(costs={"holding": "shelf == 'a'", "lost": "demand"}).model(),
         "'a' is text and shelf is a number, which cannot be compared"),
        (lambda: psconrl.plan(shop(minimise="'a'")), "'a' must be a number; got 'a'"),
        (lambda: shop(minimise="cvar99_9999999999999999999(lost)"), "be at most 99.999999"),
        (lambda: shop(limits=["p99_9999999999999999999(lost) <= 3"]), "must lie between 0 and 100"),
        (lambda: shop(minimise=" + ".join(["holding"] * 900)), "has more than 100 terms or nesting levels"),
        (lambda: shop(costs={"holding": " + ".join(["shelf"] * 900), "lost": "demand"}), "an expression may have 2000"),
        (lambda: shop(noise={f"w{k}": Bernoulli(0.5) for k in range(1000)},
                      step={"shelf": "min(" + "+".join(f"w{k}" for k in range(40)) + ", 3)"}), ""),
        (lambda: shop(noise={"demand": Poisson(10**400, most=3)}), ""),
        (lambda: shop(start={"shelf": None}), "start: 'shelf' has the values 0, 1, 2, 3; got None"),
        (lambda: shop(cost_names=3), "cost_names must be a table"),
        (lambda: psconrl.pareto(shop(), ["lost"], [1.0]), "constraint must be a name or an index"),
        (lambda: psconrl.pareto(shop(), "lost", ["a"]), "thresholds must be an array of numbers"),
        (lambda: shop(step=lambda **given: {"shelf": 10**30}).model(), "step must return shelf as a number; at shelf"),
        (lambda: shop(step={"shelf": lambda **given: {"shelf": 1}}).model(),
         "the step of 'shelf' must return a number or a text"),
    ],
)  # fmt: skip
def test_what_was_once_a_raw_error(call, said):
    with pytest.raises(PsconrlError) as caught:
        call()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_thousand_noises_are_planned_and_refused_in_one_line_for_learning():
    noise = {f"w{k}": Bernoulli(0.5) for k in range(1000)}
    costs = {f"c{k}": " + ".join(f"w{j}" for j in range(k, k + 50)) for k in range(0, 1000, 50)}
    system = System(state={"x": 2}, action={"a": 2}, noise=noise, step={}, costs=costs, minimise="c0")
    assert psconrl.plan(system).value == pytest.approx(25.0)
    with pytest.raises(ModelError, match="joint outcomes"):
        psconrl.PSConRL.of(system)


def test_live_use():
    unknown = shop(
        noise={"demand": Poisson(Gamma(2, 1), most=3)}, step={"shelf": "min(max(shelf - demand, 0) + order, 3)"}
    )
    agent = psconrl.PSConRL.of(unknown, seed=1)
    with pytest.raises(AgentError, match=r"^observe was called before act$"):
        agent.observe({"order": 1}, {"shelf": 1})
    action = agent.act({"shelf": 1})
    agent.observe(action, {"shelf": 1}, noise={"demand": None})  # not seen


@pytest.mark.parametrize("available", [0, False, "0", "order > 9", "shelf > 9"])
@pytest.mark.parametrize("arguments", [arguments_of_a_shop, arguments_of_a_clinic])
def test_no_action_is_available_anywhere(available, arguments):
    with pytest.raises(ModelError, match="no action is available in the state shelf="):
        System(**built(arguments() | {"available": available})).model(
            **({} if arguments is arguments_of_a_shop else {"comes": 0.4})
        )


@pytest.mark.parametrize(
    ("step", "said"), [("'a'", "'shelf' is a number, and cannot become a text"), ("shelf - 1", "")]
)
def test_an_event_does_not_turn_numbers_into_texts(step, said):
    clinic = arguments_of_a_clinic()
    clinic["events"]["goes"][1]["step"] = {"shelf": step}
    if not said:
        psconrl.plan(System(**built(clinic)), comes=0.4).required()
        return
    assert one_line(lambda: psconrl.plan(System(**built(clinic)), comes=0.4))


@pytest.mark.parametrize("cost", [10**30, 10**400, -(10**400), 1e200])
def test_costs_of_any_size_are_refused_or_taken(cost):
    live = Live()
    action = live.agent.act({"shelf": 1})
    refused = one_line(lambda: live.agent.observe(action, {"shelf": 1}, costs={"lost": cost}))
    assert refused == (abs(cost) > 1e100)


@pytest.mark.parametrize(
    "made",
    [
        lambda huge: System(**built(arguments_of_a_clinic() | {"clock": huge})),
        lambda huge: System(
            **built(arguments_of_a_clinic() | {"events": {"goes": Event(huge, step={"shelf": "max(shelf - 1, 0)"})}})
        ),
        lambda huge: shop().with_limits({"lost": huge}),
    ],
)
def test_whole_numbers_that_are_too_large_for_a_double(made):
    assert one_line(lambda: made(10**400))


def test_a_prior_about_a_fraction():
    made = Beta.about(Decimal("0.5"), worth=Decimal(3))
    assert (made.yes, made.no) == (1.5, 1.5)
