"""Models of other programs: reading .drn and .umb, refused input, and what a round trip keeps."""

import gzip
import io
import json
import lzma
import struct
import tarfile

import numpy as np
import pytest

import psconrl
from models import random_cmdp
from psconrl import CMDP
from psconrl.errors import ConfigError, ModelError, PolicyError, PsconrlError
from psconrl.model.exchange.conversion import to_cmdp
from psconrl.model.exchange.drn_reader import read_drn
from psconrl.model.exchange.drn_writer import write_drn
from psconrl.model.exchange.explicit_model import ChoiceNames, ExplicitModel, Reward, distinct
from psconrl.model.exchange.files import read_everything, read_explicit
from psconrl.model.exchange.goal import Goal, Limit, read_goal
from psconrl.model.exchange.umb import read_umb, write_umb
from psconrl.model.exchange.umb_values import variables

MACHINE = """\
// by hand
@type: MDP
@parameters

@placeholders
$often : 3/4
@reward_models
energy profit
@nr_states
3
@nr_choices
5
@model
state 0 [0, 1] init
\taction work [1, 4]
\t\t0 : $often
\t\t1 : 1/4
\taction rest
\t\t0 : 1
state 1 broken "in need of repair"
//[x=1]
\taction repair [5, 0]
\t\t0 : 0.5
\t\t1 : 5e-1
\taction rest [0, 0]
\t\t1 : 1
state 2 [0, 7] broken
\taction rest [2, 0]
\t\t0 : 1
"""
QUEUE = """\
@type: CTMC
@value_type: double
@reward_models
waiting served
@nr_states
3
@nr_choices
3
@model
state 0 !2 [0, 0] init
\taction 0 [0, 0]
\t\t1 : 2
state 1 !5 [1, 0]
\taction 0 [0, 0.6]
\t\t0 : 3
\t\t2 : 2
state 2 !3 [2, 0] full
\taction 0 [0, 1]
\t\t1 : 3
"""


def written(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def table(cmdp):
    return cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, cmdp.n_states)


def same_model(one, other):
    assert (table(one) == table(other)).all()
    assert (one.costs == other.costs).all()
    assert (one.thresholds == other.thresholds).all()
    assert (one.available == other.available).all()
    assert (one.cost_names, one.state_names, one.action_names) == (
        other.cost_names,
        other.state_names,
        other.action_names,
    )
    assert (one.maximise, one.at_least) == (other.maximise, other.at_least)


# .drn


def test_a_text_says_what_it_says(tmp_path):
    path = written(tmp_path, MACHINE, "machine.drn")
    cmdp = psconrl.load(path, maximise="profit", limits=["energy <= 0.5", "broken >= 0.1", "in need of repair <= 1"])
    assert cmdp.action_names == ("work/rest/repair", "rest")  # a state with two actions has no place for three
    assert cmdp.available.tolist() == [[True, True], [True, True], [True, False]]
    P = table(cmdp)
    assert P[0].tolist() == [[0.75, 0.25, 0], [1, 0, 0]]
    assert P[1].tolist() == [[0.5, 0.5, 0], [0, 1, 0]]
    assert P[2].tolist() == [[1, 0, 0], [0, 0, 0]]
    assert cmdp.costs[0].tolist() == [[-5, -1], [0, 0], [-7, 0]]  # a reward of the state and one of the action
    assert cmdp.costs[1].tolist() == [[1, 0], [5, 0], [2, 0]]
    assert cmdp.costs[2].tolist() == [[0, 0], [-1, -1], [-1, 0]]
    assert cmdp.costs[3].tolist() == [[0, 0], [1, 1], [0, 0]]
    assert cmdp.thresholds.tolist() == [0.5, -0.1, 1]
    assert cmdp.cost_names == ("profit", "energy", "broken", "in need of repair")
    assert cmdp.at_least == {"broken"}
    assert cmdp.maximise
    assert cmdp.initial.tolist() == [1, 0, 0]
    assert cmdp.state_names is None  # a comment below one state alone


def test_rates_become_rounds_and_averages_are_per_unit_of_time(tmp_path):
    """M/M/1/2 with arrivals at 2 and service at 3: the distribution is 9, 6, 4 of 19."""
    path = written(tmp_path, QUEUE, "queue.drn")
    distribution = np.array([9, 6, 4]) / 19
    for name, average in (
        ("waiting", distribution @ [0, 1, 2]),
        ("served", 3 * (distribution[1] + distribution[2])),
        ("full", distribution[2]),
    ):
        assert psconrl.plan(psconrl.load(path, minimise=name)).value == pytest.approx(average, rel=1e-10)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_text(pack, tmp_path):
    plain = psconrl.load(written(tmp_path, MACHINE, "machine.drn"), minimise="energy")
    ending = "gz" if pack is gzip.compress else "xz"
    same_model(plain, psconrl.load(written(tmp_path, pack(MACHINE.encode()), f"a.drn.{ending}"), minimise="energy"))
    inside = tar_of({"machine.drn": MACHINE.encode()})  # as Storm packs it
    same_model(plain, psconrl.load(written(tmp_path, pack(inside), f"b.drn.{ending}"), minimise="energy"))
    two = tar_of({"machine.drn": MACHINE.encode(), "other.drn": b""})
    with pytest.raises(ModelError, match="must hold one file; it holds 2"):
        read_drn(pack(two))


def test_names_below_the_states_are_read(tmp_path):
    text = QUEUE
    for s in range(3):
        text = text.replace(f"\nstate {s} ", f"\nSTATE{s}")
    for s in range(3):
        head, _, rest = text.partition(f"\nSTATE{s}")
        line, _, below = rest.partition("\n")
        text = f"{head}\nstate {s} {line}\n//[n={s}\t& open=true]\n{below}"
    assert read_drn(text.encode()).state_names == ("n=0, open=true", "n=1, open=true", "n=2, open=true")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("@type: MDP", "@type: MA", "it is a Markov automaton"),
        ("@type: MDP", "@type: Markov Automaton", "it is a Markov automaton"),
        ("@type: MDP", "@type: POMDP", "it is a POMDP"),
        ("@type: MDP", "@type: SMG", "of type 'SMG'"),
        ("@type: MDP\n", "", "of type ''"),
        ("@type: MDP", "@type: MDP\n@value_type: double-interval", "double-intervals"),
        ("@parameters\n\n", "@parameters\np q\n", "it has parameters, p q"),
        ("@model", "@modle", "line 13: cannot be read: '@modle'"),
        ("@nr_states\n3", "@nr_states\nthree", "@nr_states must be followed by a number; got 'three'"),
        ("@nr_states\n3\n", "", "there is no @nr_states"),
        ("@nr_states\n3", "@nr_states\n4", "@nr_states says 4, and there are 3"),
        ("@nr_choices\n5", "@nr_choices\n6", "@nr_choices says 6, and there are 5"),
        ("energy profit", "energy energy", "must be distinct"),
        ("state 1 broken", "state 4 broken", "line 20: state 1 must come here"),
        ("state 1 broken", "state 1 {3} broken", "has an observation"),
        ("state 0 [0, 1] init", "", "an action cannot be read"),
        ("\taction rest\n", "\taction\n", "an action cannot be read"),
        ("\t\t0 : $often", "\t\t0 $often", "a transition must be 'STATE : NUMBER'"),
        ("\t\t0 : $often", "\t\t9 : $often", "leads to state 9; the last one is 2"),
        ("\t\t0 : $often", "\t\t99999999999999999999 : $often", "is not the number of a state"),
        ("1/4", "1/5", "the probabilities of an action of state 0 sum to 0.95, not to 1"),
        ("1/4", "1/0", "'1/0' is not a number"),
        ("1/4", "$seldom", "'\\$seldom' is not a number"),
        ("1/4", "[0.2, 0.3]", "not a number but an interval"),
        ("1/4", "nan", "sum to nan"),
        ("\t\t0 : 1\nstate 1", "state 1", "an action of state 0|of state 0 sum to 0"),
        ("[5, 0]", "[5]", "there are 2 reward models, and a line has 1"),
        ("// by hand", "hello", "line 1: cannot be read: 'hello'"),
        ("state 2", "stat 2", "cannot be read: 'stat 2"),
    ],
)  # fmt: skip
def test_a_text_that_is_wrong_says_where(old, new, words, tmp_path):
    assert old in MACHINE
    with pytest.raises(ModelError, match=words) as caught:
        psconrl.load(written(tmp_path, MACHINE.replace(old, new, 1), "machine.drn"), minimise="energy")
    assert str(caught.value).startswith(f"{tmp_path / 'machine.drn'}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("state 1 !5", "state 1", "the rate of leaving, !NUMBER, is missing"),
        ("state 1 !5", "state 1 !6", "the rates of an action of state 1 sum to 5, not to 6"),
        ("\taction 0 [0, 1]", "\taction 0 [0, 1]\n\t\t1 : 3\n\taction 1 [0, 0]", "has 2 actions; it can have one"),
    ],
)
def test_rates_that_are_wrong_are_said(old, new, words):
    with pytest.raises(ModelError, match=words):
        read_drn(QUEUE.replace(old, new, 1).encode())


def test_numbers_with_few_digits_are_made_whole():
    text = MACHINE.replace("\t\t0 : $often\n\t\t1 : 1/4", "\t\t0 : 0.333333\n\t\t1 : 0.333333\n\t\t2 : 0.333333")
    assert read_drn(text.encode()).probabilities[:3].tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert read_drn(QUEUE.replace("!5", "!5.00004").encode()).exit_rates.tolist() == [2, 5, 3]


def test_states_without_a_choice_stay():
    text = MACHINE.replace("\taction rest [2, 0]\n\t\t0 : 1\n", "")
    with pytest.raises(ModelError, match="truncated: @nr_choices says 5, and there are 4"):
        read_drn(text.encode())
    for stuck in (text.replace("\n5\n", "\n4\n"), text.replace("[0, 7] broken", "[0, 7] broken deadlock")):
        cmdp = to_cmdp(read_drn(stuck.encode()), Goal("profit", maximise=False))
        assert table(cmdp)[2].tolist() == [[0, 0, 1], [0, 0, 0]]
        assert cmdp.costs[0, 2].tolist() == [7, 0]  # of the state, as long as it lasts
    with pytest.raises(ModelError, match="state 2 has no action, and there is no @nr_choices"):
        read_drn(text.replace("@nr_choices\n5\n", "").encode())


def test_rewards_without_a_name_have_one():
    text = MACHINE.replace("energy profit\n", "energy  \n")
    assert list(read_drn(text.encode()).rewards) == ["energy", "reward"]


# .umb, written here independently of the library


def tar_of(files):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return plain.getvalue()


def packed(kind, *values):
    return struct.pack(f"<{len(values)}{kind}", *values)


def index_of(**changes):
    system = {
        "time": "discrete", "#players": 1, "#states": 3, "#initial-states": 1, "#choices": 4, "#choice-actions": 2,
        "#branches": 6, "#branch-actions": 0, "#observations": 0, "branch-probability-type": {"type": "double"},
    }  # fmt: skip
    return {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": system | changes,
        "annotations": {
            "rewards": {
                "r": {"alias": "Money", "applies-to": ["states", "choices", "branches"], "type": {"type": "double"}},
                "i": {"applies-to": ["states"], "type": {"type": "int", "size": 64}},
            },
            "aps": {"bad": {"alias": "Bad State", "applies-to": ["states"], "type": {"type": "bool", "size": 1}}},
        },
    }


def files_of(index=None, **changes):
    files = {
        "index.json": json.dumps(index_of() if index is None else index).encode(),
        "state-to-choices.bin": packed("Q", 0, 2, 3, 4),
        "choice-to-branches.bin": packed("Q", 0, 2, 3, 5, 6),
        "branch-to-target.bin": packed("Q", 0, 1, 2, 0, 0, 2),
        "branch-to-probability.bin": packed("d", 0.25, 0.75, 1.0, 0.5, 0.5, 1.0),
        "state-is-initial.bin": bytes([0b010, *[0] * 7]),
        "actions/choices/values.bin": packed("I", 1, 0, 0, 0),
        "actions/choices/string-mapping.bin": packed("Q", 0, 3, 5),
        "actions/choices/strings.bin": b"runup",
        "annotations/rewards/r/states/values.bin": packed("d", 1, 2, 3),
        "annotations/rewards/r/choices/values.bin": packed("d", 10, 20, 30, 40),
        "annotations/rewards/r/branches/values.bin": packed("d", 100, 200, 300, 400, 600, 700),
        "annotations/rewards/i/states/values.bin": packed("q", -1, 0, 5),
        "annotations/aps/bad/states/values.bin": bytes([0b101, *[0] * 7]),
    }
    return {name: content for name, content in (files | changes).items() if content is not None}


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, lzma.compress])
def test_an_archive_says_what_it_says(pack, tmp_path):
    path = written(tmp_path, pack(tar_of(files_of())), "m.umb")
    cmdp = psconrl.load(path, minimise="Money", limits=["i >= 2", "Bad State<=0.5"])
    assert cmdp.action_names == ("run", "up")  # and so the first choice of state 0 is its second action
    assert cmdp.available.tolist() == [[True, True], [True, False], [True, False]]
    assert table(cmdp).tolist() == [
        [[0, 0, 1], [0.25, 0.75, 0]], [[1, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]],
    ]  # fmt: skip
    # A state, a choice, and the mean of the branches.
    assert cmdp.costs[0].tolist() == [[1 + 20 + 300, 1 + 10 + 0.25 * 100 + 0.75 * 200], [2 + 30 + 500, 0], [743, 0]]
    assert cmdp.costs[1].tolist() == [[1, 1], [0, 0], [-5, 0]]
    assert cmdp.costs[2].tolist() == [[1, 1], [0, 0], [1, 0]]
    assert cmdp.initial.tolist() == [0, 1, 0]
    assert cmdp.thresholds.tolist() == [-2, 0.5]


def fraction(top, bottom, size=128):
    half = size // 16
    return top.to_bytes(half, "little", signed=True) + bottom.to_bytes(half, "little")


@pytest.mark.parametrize("size", [128, 256])
def test_fractions(size):
    index = index_of(**{"branch-probability-type": {"type": "rational", "size": size}})
    index["annotations"]["rewards"]["i"]["type"] = {"type": "rational", "size": 256}
    ones = [(1, 3), (2, 3), (7, 7), (10**17, 2 * 10**17), (1, 2), (1, 1)]
    given = {
        "branch-to-probability.bin": b"".join(fraction(a, b, size) for a, b in ones),
        "annotations/rewards/i/states/values.bin": fraction(-1, 3, 256)
        + fraction(10**30, 10**29, 256)
        + fraction(0, 1, 256),
    }
    model = read_umb(tar_of(files_of(index, **given)))
    assert model.probabilities.tolist() == [1 / 3, 2 / 3, 1, 0.5, 0.5, 1]
    assert model.rewards["i"].states.tolist() == [-1 / 3, 10, 0]
    with pytest.raises(ModelError, match="fraction"):
        read_umb(tar_of(files_of(index, **given | {"branch-to-probability.bin": fraction(1, 0, size) * 6})))


def test_continuous_time_by_exit_rates():
    """Two states, left at rates 2 and 3 by either choice: 3/5 of the time in the first."""
    index = {
        "format-version": 1,
        "transition-system": {
            "time": "stochastic", "#players": 1, "#states": 2, "#initial-states": 0, "#choices": 3,
            "#choice-actions": 0, "#branches": 3, "#branch-actions": 0, "#observations": 0,
            "branch-probability-type": {"type": "double"}, "exit-rate-type": {"type": "double"},
        },
        "annotations": {"rewards": {
            "first": {"applies-to": ["states"], "type": {"type": "double"}},
            "jumps": {"applies-to": ["choices"], "type": {"type": "double"}},
            "one": {"applies-to": ["branches"], "type": {"type": "double"}},
        }},
    }  # fmt: skip
    files = {
        "index.json": json.dumps(index).encode(),
        "state-to-choices.bin": packed("Q", 0, 2, 3),
        "branch-to-target.bin": packed("Q", 1, 1, 0),
        "branch-to-probability.bin": packed("d", 1, 1, 1),
        "state-to-exit-rate.bin": packed("d", 2, 3),
        "annotations/rewards/first/states/values.bin": packed("d", 1, 0),
        "annotations/rewards/jumps/choices/values.bin": packed("d", 1, 1, 1),
        "annotations/rewards/one/branches/values.bin": packed("d", 5, 7, 0),
    }
    model = read_umb(tar_of(files))
    for goal, value in (
        (Goal("first", maximise=True), 3 / 5),
        (Goal("jumps", maximise=True), 2 * 3 / 5 + 3 * 2 / 5),
        (Goal("one", maximise=True), 7 * 2 * 3 / 5),
        (Goal("one", maximise=False), 5 * 2 * 3 / 5),
    ):
        assert psconrl.plan(to_cmdp(model, goal)).value == pytest.approx(value, rel=1e-10)
    assert (to_cmdp(model, Goal("first", maximise=True)).initial == [1, 0]).all()  # none is marked


def changed_index(path, value):
    index = index_of()
    place = index
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return {"index.json": json.dumps(index).encode()}


TS, PROBABILITY = "transition-system", "branch-probability-type"
REWARD = ("annotations", "rewards", "r")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (changed_index(["format-version"], 2), r"UMB of version 2 is not known here \(newest: 1\)"),
        (changed_index([TS, "time"], "urgent-stochastic"), "it is a Markov automaton"),
        (changed_index([TS, "time"], "sidereal"), "time 'sidereal' is not known"),
        (changed_index([TS, "time"], "stochastic"), "state-to-exit-rate.bin is missing"),
        (changed_index([TS, "#players"], 2), "a game of 2 players"),
        (changed_index([TS, "#observations"], 2), "cannot be seen"),
        (changed_index([TS, "#states"], 0), "#states must be at least 1"),
        (changed_index([TS, "#states"], -1), "#states must be a whole number from 0 on; got -1"),
        (changed_index([TS, "#states"], True), "got True"),
        (changed_index([TS, "#states"], 4), "state-to-choices.bin must have 5 entries of 8 bytes; it has 32 bytes"),
        (changed_index([TS, "#states"], 10**9), "a model of 1,000,000,000 states takes 16 GB"),
        (changed_index([TS, "#states"], 10**30), "must be a whole number"),
        (changed_index([TS, "#initial-states"], 2), "must mark the 2 initial states; it marks 1"),
        (changed_index([TS, PROBABILITY], {"type": "double-interval"}), "is given by intervals"),
        (changed_index([TS, PROBABILITY], {"type": "rational-interval"}), "is given by intervals"),
        (changed_index([TS, PROBABILITY], {"type": "half"}), "is not known: {'type': 'half'}"),
        (changed_index([TS, PROBABILITY], {"type": "double", "size": 0}), "must be a number of bits; got 0"),
        (changed_index([TS, PROBABILITY], {"type": "rational", "size": 64}), "'rational' and 64 bits"),
        (changed_index([TS, PROBABILITY], None), "is missing, and there are choices with several branches"),
        (changed_index([*REWARD, "applies-to"], ["observations"]), "applies to 'observations'"),
        (changed_index([*REWARD, "applies-to"], "states"), "must say what it applies to"),
        (changed_index([*REWARD, "type"], {"type": "string"}), "numbers of type 'string'"),
        (changed_index([*REWARD, "probability-type"], {"type": "double"}), "is random itself"),
        (changed_index([*REWARD, "alias"], "i"), "the names of all rewards must be distinct"),
        (changed_index(["annotations", "aps", "bad", "applies-to"], ["choices"]), "must apply to states"),
        (changed_index(["annotations"], []), "annotations must be an object"),
        (changed_index([TS], []), "transition-system must be an object"),
        ({"index.json": b"{"}, "index.json is missing or no JSON"),
        ({"index.json": b"[1]"}, "version None"),
        ({"index.json": None}, "index.json is missing"),
        ({"state-to-choices.bin": None}, "state-to-choices.bin is missing, and there are 4 entries for 3"),
        ({"state-to-choices.bin": packed("Q", 0, 2, 1, 4)}, "must be 4 numbers that rise from 0 to 4"),
        ({"state-to-choices.bin": packed("Q", 1, 2, 3, 4)}, "must be 4 numbers that rise from 0 to 4"),
        ({"state-to-choices.bin": packed("Q", 0, 2, 3, 5)}, "must be 4 numbers that rise from 0 to 4"),
        ({"state-to-choices.bin": packed("Q", 0, 2**63 + 2, 3, 4)}, "must be 4 numbers that rise from 0 to 4"),
        ({"choice-to-branches.bin": packed("Q", 0, 2, 2, 5, 6)}, "transition.* must sum to 1"),
        ({"branch-to-target.bin": packed("Q", 0, 1, 2, 0, 3, 2)}, "leads to state 3; the last one is 2"),
        ({"branch-to-target.bin": packed("Q", 0, 1, 2, 0, 2**64 - 1, 2)}, "leads to state 18446744073709551615"),
        ({"branch-to-target.bin": packed("Q", 0, 1)}, "must have 6 entries of 8 bytes; it has 16 bytes"),
        ({"branch-to-probability.bin": packed("d", 0.25, 0.5, 1, 0.5, 0.5, 1)}, "must sum to 1"),
        ({"branch-to-probability.bin": packed("d", 0.25, -0.5, 1, 0.5, 0.5, 1)}, "must be a probability"),
        ({"branch-to-probability.bin": packed("d", 0.25, np.nan, 1, 0.5, 0.5, 1)}, "must be a probability"),
        ({"state-is-initial.bin": b"\2"}, "must have 3 bits, filled up to multiples of 64; it has 1 bytes"),
        ({"state-is-initial.bin": None}, "must mark the 1 initial states; it marks 0"),
        ({"actions/choices/values.bin": packed("I", 1, 0, 0, 2)}, "action 2 is named; the last one is 1"),
        ({"actions/choices/strings.bin": b"run"}, "must rise from 0 to 3"),
        ({"actions/choices/strings.bin": b"ru\xff\xffp"}, "a string is not UTF-8"),
        ({"actions/choices/strings.bin": None}, "actions/choices/strings.bin is missing"),
        ({"annotations/rewards/r/choices/values.bin": None}, "annotations/rewards/r/choices/values.bin is missing"),
        ({"annotations/rewards/r/states/values.bin": packed("d", 1, np.inf, 1)}, "must be finite"),
        ({"annotations/aps/bad/states/values.bin": None}, "annotations/aps/bad/states/values.bin is missing"),
    ],
)  # fmt: skip
def test_an_archive_that_is_wrong_says_what(changes, words, tmp_path):
    path = written(tmp_path, tar_of(files_of(**changes)), "m.umb")
    with pytest.raises(ModelError, match=words) as caught:
        psconrl.load(path, minimise="Money")
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_what_may_be_left_out():
    index = index_of(**{"#choices": 3, "#branches": 3, "#choice-actions": 0, "#initial-states": 0})
    del index["annotations"], index[TS]["branch-probability-type"]
    files = {"index.json": json.dumps(index).encode(), "branch-to-target.bin": packed("Q", 1, 2, 0)}
    model = read_umb(tar_of(files))
    assert model.first_choice.tolist() == model.first_branch.tolist() == [0, 1, 2, 3]
    assert model.probabilities.tolist() == [1, 1, 1]
    assert model.choice_names is None
    assert model.quantities == {}


def test_labels_of_more_states_than_a_word_has_bits():
    n = 130
    index = index_of(**{"#states": n, "#choices": n, "#branches": n, "#choice-actions": 0})
    index["annotations"] = {"aps": index["annotations"]["aps"]}
    marked = np.arange(n) % 7 == 3
    number = sum(1 << s for s in range(n) if marked[s])
    files = {
        "index.json": json.dumps(index).encode(),
        "branch-to-target.bin": packed("Q", *range(n)),
        "branch-to-probability.bin": packed("d", *[1.0] * n),
        "state-is-initial.bin": (1 << 65).to_bytes(24, "little"),
        "annotations/aps/bad/states/values.bin": number.to_bytes(24, "little"),
    }
    model = read_umb(tar_of(files))
    assert (model.labels["Bad State"] == marked).all()
    assert np.flatnonzero(model.initial).tolist() == [65]


def test_variables_as_the_specification_shows_them():
    """Its two examples, byte for byte, but that an optional variable is left out, for which no names are made."""
    kind = lambda name, size: {"type": {"type": name, "size": size}}  # noqa: E731
    first = [{"name": "v0", **kind("uint", 8), "offset": -128}, {"name": "v1", **kind("int", 16)}]
    data = memoryview(bytes([0b10111000, 0b11111111, 0b10111101, 0b00000000, 0b00000001, 0b00000000]))
    assert variables(data, [{"variables": first}], [], 2) == ["v0=56, v1=-16897", "v0=-128, v1=1"]
    second = [
        {"name": "v0", **kind("bool", 2)}, {"padding": 12}, {"name": "v2", **kind("string", 64)},
        {"name": "v3", **kind("bool", 3)}, {"padding": 7},
    ]  # fmt: skip
    rows = [bytes.fromhex("6d4000000000000000" + "4000"), bytes.fromhex("6c8000000000000000" + "0000")]
    texts = ["xyz", "ab", "c"]
    assert variables(memoryview(b"".join(rows)), [{"variables": second}], texts, 2) == [
        "v0=true, v2=ab, v3=true", "v0=false, v2=c, v3=false",
    ]  # fmt: skip
    assert variables(data, [{"variables": [{**first[0], "is-optional": True}, first[1]]}], [], 2) is None
    assert variables(data, [{"variables": first}], [], 3) is None


def test_states_are_called_by_their_variables(tmp_path):
    index = index_of()
    x = {"name": "x", "type": {"type": "uint", "size": 3}}
    same = {"name": "z", "type": {"type": "bool", "size": 1}}
    index["valuations"] = {"states": {"unique": True, "classes": [{"variables": [x, same, {"padding": 4}]}]}}
    files = files_of(index, **{"valuations/states/valuations.bin": bytes([0b1000, 0b1101, 0b1010])})
    assert read_umb(tar_of(files)).state_names == ("x=0", "x=5", "x=2")
    twice = files_of(index, **{"valuations/states/valuations.bin": bytes([0, 1, 1])})
    assert read_umb(tar_of(twice)).state_names is None


# Damage


def readings(data, read):
    """Read every prefix of a file: the outcome is an error of the library, or a model."""
    for cut in range(len(data)):
        try:
            yield cut, read(data[:cut])
        except ModelError:
            continue


def same_explicit(one, other):
    arrays = ("first_choice", "first_branch", "targets", "probabilities", "initial")
    assert all((getattr(one, name) == getattr(other, name)).all() for name in arrays)
    assert one.rewards.keys() == other.rewards.keys()
    for name in one.rewards:
        assert all(np.array_equal(*(getattr(m.rewards[name], p) for m in (one, other))) for p in ("states", "choices"))
    assert {name: mask.tolist() for name, mask in one.labels.items()} == {
        n: m.tolist() for n, m in other.labels.items()
    }


@pytest.mark.parametrize("text", [MACHINE, QUEUE])
def test_a_text_that_was_cut_off_is_refused_or_whole(text):
    data, whole = text.encode(), read_drn(text.encode())
    for cut, model in readings(data, read_drn):
        assert not data[cut:].strip(), cut  # only blanks were lost
        same_explicit(model, whole)
    assert not list(readings(gzip.compress(data), read_drn))


def plain(data):
    return data


@pytest.mark.parametrize("pack", [plain, gzip.compress, lzma.compress])
def test_an_archive_that_was_cut_off_is_refused_or_whole(pack, tmp_path):
    data = pack(tar_of(files_of()))
    whole = read_umb(data)
    path = tmp_path / "m.umb"
    cuts = range(len(data)) if pack is not plain else sorted({*range(0, len(data), 97), *range(0, len(data), 512)})
    read = 0
    for cut in cuts:
        path.write_bytes(data[:cut])
        try:
            model = read_explicit(path)
        except ModelError:
            continue
        read += 1
        assert not data[cut:].strip(b"\0"), cut  # only what fills the last block was lost
        same_explicit(model, whole)
    assert bool(read) == (pack is plain)


def test_an_archive_without_its_end_is_refused_though_nothing_seems_to_be_missing():
    """The part cut off may be an optional file."""
    files = files_of(**{"valuations/states/valuations.bin": b"\0\1\2"})
    data = tar_of(files)
    whole = sum(512 + (len(content) + 511) // 512 * 512 for content in files.values())
    assert read_umb(data[: whole + 512]).n_states == 3
    for cut in (whole, whole - 1024, whole + 511):
        with pytest.raises(ModelError, match="truncated: the archive has no end"):
            read_umb(data[:cut])


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["m.umb", "m.drn"])
def test_bytes_that_were_changed_never_end_in_a_traceback(name, tmp_path):
    data = tar_of(files_of()) if name == "m.umb" else MACHINE.encode()
    rng = np.random.default_rng(7)
    path = tmp_path / name
    read, messages = 0, []
    for _ in range(400):
        broken = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            broken[place] = rng.integers(256)
        path.write_bytes(broken)
        try:
            cmdp, kinds = read_everything(path)
        except PsconrlError as error:
            messages.append(str(error))
        else:
            read += 1
            assert set(kinds) == set(cmdp.cost_names)
    assert min(read, len(messages)) > 20
    assert all(len(message.splitlines()) == 1 for message in messages)


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.001")
    for pack in (gzip.compress, lzma.compress):
        with pytest.raises(ModelError, match=r"what it unpacks to, at least, takes 1.05 MB, more than 1 MB"):
            read_umb(pack(bytes(5_000_000)))


def test_other_things_are_not_taken_for_models(tmp_path):
    for name, data, words in (
        ("a.umb", b"hello", "not a UMB file: it is no tar archive"),
        ("a.drn", b"\xff\xfe", "it is not text"),
        ("a.drn", b"", "there is no @model"),
        ("a.umb", tar_of({}), "it is no tar archive"),
    ):
        with pytest.raises(ModelError, match=words):
            psconrl.load(written(tmp_path, data, name), minimise="x")
    with pytest.raises(ModelError, match=r"none\.umb: no such file"):
        psconrl.load(tmp_path / "none.umb", minimise="x")


# Goals


def test_goals_as_they_are_written():
    assert read_goal() is None
    assert read_goal(maximise="gold", limits=["a b <= 3", "gem>=-1e-3"]) == Goal(
        "gold", True, (Limit("a b", False, 3.0), Limit("gem", True, -0.001))
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "say what to minimise or maximise; it has rewards: energy, profit; labels: broken, in need of repair"),
        ({"limits": "energy<=1"}, "limits go with an objective"),
        ({"minimise": "energy", "maximise": "profit"}, "one objective: minimise or maximise, not both"),
        ({"minimise": "enrgy"}, "unknown reward or label 'enrgy'; did you mean 'energy'?"),
        ({"minimise": "energy", "limits": "brokn<=1"}, "unknown reward or label 'brokn'; did you mean 'broken'?"),
        ({"minimise": "energy", "limits": "broken!=1"}, "must be 'NAME <= NUMBER' or 'NAME >= NUMBER'; got 'broken"),
        ({"minimise": "energy", "limits": "broken<=much"}, "got 'broken<=much'"),
        ({"minimise": "energy", "limits": "broken<=inf"}, "got 'broken<=inf'"),
        ({"minimise": "energy", "limits": [3]}, "got 3"),
        ({"minimise": "energy", "limits": 3}, "limits must be text such as"),
        ({"minimise": "energy", "limits": ["broken<=1", "broken<=2"]}, "limited twice on the same side"),
        ({"minimise": 3}, "the objective must be the name"),
        ({"minimize": "energy"}, "unknown option 'minimize'; did you mean 'minimise'?"),
        ({"minimise": "energy", "constants": "N=3"}, "constants go with .prism"),
    ],
)  # fmt: skip
def test_a_goal_that_is_wrong_says_what(options, words, tmp_path):
    with pytest.raises(ConfigError) as caught:
        psconrl.load(written(tmp_path, MACHINE, "machine.drn"), **options)
    assert words in str(caught.value)


def test_a_quantity_can_be_kept_from_both_sides(tmp_path):
    path = written(tmp_path, MACHINE, "machine.drn")
    cmdp = psconrl.load(path, maximise="profit", limits=["broken >= 0.1", "broken <= 0.2"])
    assert cmdp.cost_names == ("profit", "broken", "broken (at most)")
    plan = psconrl.plan(cmdp).required()
    assert 0.1 - 1e-9 <= -plan.costs[1] == pytest.approx(plan.costs[2])
    assert plan.costs[2] <= 0.2 + 1e-9


def test_a_label_that_is_called_like_a_reward(tmp_path):
    text = MACHINE.replace("[0, 7] broken", "[0, 7] broken energy")
    assert list(read_drn(text.encode()).quantities)[-1] == "energy (label)"
    cmdp = psconrl.load(written(tmp_path, text, "m.drn"), minimise="energy (label)")
    assert cmdp.costs[0].tolist() == [[0, 0], [0, 0], [1, 0]]


def test_everything_is_looked_at(tmp_path):
    cmdp, kinds = read_everything(written(tmp_path, MACHINE, "machine.drn"))
    assert kinds == {"energy": "reward", "profit": "reward", "broken": "label", "in need of repair": "label"}
    assert cmdp.cost_names == tuple(kinds)
    empty = MACHINE.replace("energy profit", "").replace('broken "in need of repair"', "").replace(" broken", "")
    for bracket in ("[0, 1] ", "[1, 4]", "[5, 0]", "[0, 0]", "[0, 7]", "[2, 0]"):
        empty = empty.replace(bracket, "")
    with pytest.raises(ModelError, match="neither rewards nor labels"):
        read_everything(written(tmp_path, empty, "empty.drn"))


# Round trips


@pytest.mark.parametrize("ending", [".umb", ".drn"])
@pytest.mark.parametrize("name", ["box", "queue", "stock", "inventory"])
def test_nothing_is_lost_on_the_way(name, ending, tmp_path):
    cmdp = psconrl.load(name)
    path = tmp_path / f"{name}{ending}"
    psconrl.save(cmdp, path)
    sense = "maximise" if cmdp.maximise else "minimise"
    word = (lambda cost: "_".join(cost.split())) if ending == ".drn" else str
    limits = [f"{word(c)} <= {tau!r}" for c, tau in zip(cmdp.cost_names[1:], cmdp.thresholds.tolist(), strict=True)]
    again = psconrl.load(path, **{sense: word(cmdp.cost_names[0])}, limits=limits)
    assert (table(cmdp) == table(again)).all()
    assert (cmdp.costs == again.costs).all()
    assert (cmdp.available == again.available).all()
    assert (cmdp.initial == again.initial).all()
    if ending == ".umb" or all(" " not in s for s in cmdp.state_names):
        assert cmdp.state_names == again.state_names
    assert psconrl.plan(again).value == pytest.approx(psconrl.plan(cmdp).value, rel=1e-9)


@pytest.mark.parametrize("ending", [".umb", ".drn"])
def test_what_is_kept_from_below_is_written_as_it_is_meant(ending, tmp_path):
    cmdp = psconrl.load(written(tmp_path, MACHINE, "machine.drn"), maximise="profit", limits="broken >= 0.1")
    psconrl.save(cmdp, tmp_path / f"again{ending}")
    again = psconrl.load(tmp_path / f"again{ending}", maximise="profit", limits="broken >= 0.1")
    assert (cmdp.costs == again.costs).all()
    assert psconrl.plan(again).value == pytest.approx(psconrl.plan(cmdp).value)


@pytest.mark.parametrize("ending", [".umb", ".drn"])
@pytest.mark.parametrize("seed", range(3))
def test_the_chain_of_a_plan_has_its_averages(ending, seed, tmp_path):
    cmdp = random_cmdp("dense", 6, 3, 2, seed)
    plan = psconrl.plan(cmdp)
    before = plan.policy.copy()
    psconrl.save(cmdp, tmp_path / f"chain{ending}", plan.policy)
    assert (plan.policy == before).all()
    for i, name in enumerate(cmdp.cost_names):
        word = "_".join(name.split()) if ending == ".drn" else name
        chain = psconrl.load(tmp_path / f"chain{ending}", minimise=word)
        assert chain.n_actions == 1
        average = psconrl.evaluate(chain, np.zeros(chain.n_states, dtype=int)).costs[0]
        assert average == pytest.approx(plan.costs[i], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ending", [".umb", ".drn"])
def test_a_chain_has_the_signs_of_what_it_names(ending, tmp_path):
    model = psconrl.load(
        written(tmp_path, MACHINE, "m.drn"), maximise="profit", limits=["broken >= 0.5", "energy <= 9"]
    )
    plan = psconrl.plan(model)
    psconrl.save(model, tmp_path / f"chain{ending}", plan.policy)
    for name, average in (("profit", plan.value), ("broken", 0.5), ("energy", plan.costs[2])):
        assert psconrl.plan(psconrl.load(tmp_path / f"chain{ending}", minimise=name)).value == pytest.approx(average)


def test_a_chain_goes_where_it_can_be_read(tmp_path):
    cmdp = psconrl.load("box")
    with pytest.raises(ModelError, match=r"the chain of a policy is written to \.umb or \.drn"):
        psconrl.save(cmdp, tmp_path / "chain.npz", psconrl.plan(cmdp).policy)
    with pytest.raises(PolicyError, match=r"give its \.policy"):
        psconrl.save(cmdp, tmp_path / "chain.umb", psconrl.plan(cmdp))
    with pytest.raises(ModelError, match=r"must end in \.npz, \.json, \.umb, \.drn"):
        psconrl.save(cmdp, tmp_path / "box.tra")


def test_files_are_the_same_bytes_every_time(tmp_path):
    for name in ("a.umb", "b.umb"):
        psconrl.save(psconrl.load("box"), tmp_path / name)
    assert (tmp_path / "a.umb").read_bytes() == (tmp_path / "b.umb").read_bytes()


@pytest.mark.parametrize("write_read", [(write_umb, read_umb), (write_drn, read_drn)])
def test_labels_rates_and_dead_ends_there_and_back(write_read):
    write, read = write_read
    model = ExplicitModel(
        first_choice=np.array([0, 1, 2, 2]),
        first_branch=np.array([0, 2, 3]),
        targets=np.array([1, 2, 0]),
        probabilities=np.array([0.5, 0.5, 1.0]),
        initial=np.array([True, True, False]),
        exit_rates=None,
        rewards={"a": Reward(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2])), "A": Reward(np.array([0.0, 0.5, 0.0]))},
        labels={"end": np.array([False, False, True]), "two words": np.array([True, False, True])},
        choice_names=ChoiceNames(("go", ""), np.array([0, 1])),
    )
    again = read(write(model))
    same = to_cmdp(model, Goal("a", True, (Limit("two words", True, 0.2), Limit("A", False, 1.0))))
    same_model(same, to_cmdp(again, Goal("a", True, (Limit("two words", True, 0.2), Limit("A", False, 1.0)))))
    assert {"end", "two words"} <= set(again.labels)
    assert again.initial.tolist() == [True, True, False]
    assert again.choice_names.names[again.choice_names.of_choice[0]] == "go"


@pytest.mark.parametrize("write_read", [(write_umb, read_umb), (write_drn, read_drn)])
def test_rates_there_and_back(write_read):
    write, read = write_read
    model = read_drn(QUEUE.encode())
    again = read(write(model))
    assert again.exit_rates.tolist() == [2, 5, 3]
    same_model(to_cmdp(model, Goal("served", True)), to_cmdp(again, Goal("served", True)))


@pytest.mark.parametrize(
    ("names", "codes", "shown"),
    [
        (("a", "b"), [0, 1, 0, 1], ("a", "b")),
        (("b", "a"), [1, 0, 0, 1], ("b", "a")),
        (("a", "b", "c"), [0, 1, 0, 2], ("a", "b/c")),
        (("a",), [0, 0, 0, 0], ("a", "a (2)")),
        (("", "a"), [0, 1, 0, 1], ("0", "a")),
        (("",), [0, 0, 0, 0], None),
        (("a" * 50, "b", "c"), [0, 1, 2, 1], None),
    ],
)
def test_actions_are_called_what_their_choices_are(names, codes, shown):
    model = ExplicitModel(
        np.array([0, 2, 4]),
        np.arange(5),
        np.array([0, 1, 0, 1]),
        np.ones(4),
        np.array([True, False]),
        rewards={"r": Reward(choices=np.arange(4.0))},
        choice_names=ChoiceNames(names, np.array(codes)),
    )
    cmdp = to_cmdp(model, Goal("r", False))
    assert cmdp.action_names == shown
    # Whatever the order of the actions, a choice keeps its reward and its target.
    for s in range(2):
        for a in range(2):
            assert table(cmdp)[s, a, int(cmdp.costs[0, s, a]) % 2] == 1


# Lower-bound constraints


def floor_model():
    """Two jobs: one earns, the other serves; at least 0.3 of all rounds must be served."""
    P = np.ones((1, 2, 1))
    return CMDP(P, [[[1.0, 3.0]], [[0.0, -1.0]]], {"served": 0.3}, cost_names=["cost", "served"], at_least=["served"])


def test_a_limit_from_below_is_shown_as_it_is_meant(tmp_path):
    cmdp = floor_model()
    assert cmdp.thresholds.tolist() == [-0.3]
    plan = psconrl.plan(cmdp)
    assert plan.value == pytest.approx(0.7 + 0.9)
    assert "costs=[0.3]" in repr(plan)
    record = plan.record()
    assert record["costs"]["served"] == pytest.approx(0.3)
    assert record["thresholds"] == {"served": 0.3}
    assert record["at_least"] == ["served"]
    plan.save(tmp_path / "plan.npz")
    assert psconrl.Plan.load(tmp_path / "plan.npz").record() == record
    assert cmdp.with_thresholds({"served": 0.5}).thresholds.tolist() == [-0.5]
    assert cmdp.with_thresholds([-0.5]).thresholds.tolist() == [-0.5]
    assert psconrl.plan(cmdp.with_thresholds({"served": 0.5})).value == pytest.approx(2.0)
    for ending in (".npz", ".json"):
        psconrl.save(cmdp, tmp_path / f"m{ending}")
        same_model(cmdp, psconrl.load(tmp_path / f"m{ending}"))
    assert cmdp.restricted([0]).at_least == {"served"}


def test_what_cannot_be_met_from_below_is_said_so():
    plan = psconrl.plan(floor_model().with_thresholds({"served": 1.5}))
    words = "no policy keeps 'served' >= 1.5; the largest reachable average is 1. Lower the threshold."
    assert str(plan.infeasibility) == words
    assert plan.record()["infeasibility"]["alone"] == {"served": 1.0}
    two = CMDP(
        np.ones((1, 2, 1)),
        [[[0.0, 0.0]], [[0.0, -1.0]], [[0.0, 1.0]]],
        {"served": 0.6, "effort": 0.5},
        cost_names=["cost", "served", "effort"],
        at_least=["served"],
    )
    message = str(psconrl.plan(two).infeasibility)
    assert message.startswith(
        "no policy keeps 'served' >= 0.6 and 'effort' <= 0.5 together. Lower 'served' to 0.5 or raise 'effort' to 0.6 ("
    )


@pytest.mark.parametrize(
    ("at_least", "words"),
    [
        (["cost"], "unknown constrained cost 'cost'"),
        ("served", "must be a list of names"),
        (3, "must be a list of names"),
    ],
)
def test_names_of_limits_from_below_are_checked(at_least, words):
    with pytest.raises(ModelError, match=words):
        CMDP(np.ones((1, 1, 1)), np.zeros((2, 1, 1)), [0], cost_names=["cost", "served"], at_least=at_least)


def test_copies_of_names_are_numbered():
    names = ["a (3)", "a", "b", "a", "a", "a (2)", "a"]
    assert distinct(names, "{} ({})") == ["a (3)", "a", "b", "a (2)", "a (4)", "a (2) (2)", "a (5)"]
    many = 20_000  # by comparing all with all this would take hours
    assert distinct(["a"] * many, "{}_{}") == ["a", *(f"a_{k}" for k in range(2, many + 1))]
