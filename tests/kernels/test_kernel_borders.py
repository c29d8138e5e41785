"""Kernels refuse arrays that do not fit together, before a loop reads or writes beyond them.

Each call is made twice: as it is, which must succeed, and with one argument damaged.
"""

import numpy as np
import pytest

from psconrl.kernels.agents import least_squares_values, sa_cvi, sa_cvi_blocks, trips
from psconrl.kernels.agents.triple_qa import TripleQA
from psconrl.kernels.arithmetic import products
from psconrl.kernels.chains import costs, double_double, occupancy, policy_evaluation, small_classes, transient, visits
from psconrl.kernels.draws import counts, dirichlet
from psconrl.kernels.graphs import attractor, moves, nested_dissection, successors
from psconrl.kernels.linear import aggregation, csr, multigrid_steps, sparse_elimination
from psconrl.kernels.play import play_loop, rounds
from psconrl.kernels.search import (
    drive_to_best,
    improvement,
    mixture_search,
    outward_improvement,
    small_components,
    sparse_improvement,
)
from psconrl.kernels.search.transitions import Rows
from psconrl.kernels.sets import balls, best_rows, boxes, intervals, optimism, pessimism
from psconrl.markov.elimination_order import NO_ORDER, order_for


def places(*numbers):
    return np.array(numbers, np.int32)


def ints(*numbers):
    return np.array(numbers, np.int64)


def ones(*shape):
    return np.ones(shape)


def yes(*shape):
    return np.ones(shape, np.bool_)


# Two states and one action: the first stays or moves on, the second goes back.
INDPTR, INDICES, DATA = places(0, 2, 3), places(0, 1, 0), np.array([0.5, 0.5, 1.0])
CHAIN = {"indptr": INDPTR, "indices": INDICES, "data": DATA}
MODEL = {"indptr": INDPTR, "successors": INDICES, "probabilities": DATA}
REGRESSION = {"indptr": INDPTR, "successors": INDICES, "shares": DATA, "n_states": 2, "H": 2}
FLOW = {"indptr": INDPTR, "indices": INDICES, "flow": DATA}
COLUMNS = {"t_indptr": INDPTR, "t_indices": INDICES, "t_data": DATA}
GROUPS = {"start": ints(0, 2), "members": ints(0, 1)}
# Substochastic: the same without the first entry, so that both states are left.
WAY = {"indptr": places(0, 1, 2), "indices": places(1, 0), "data": np.array([0.5, 0.25])}
# The states of a cycle of three: each is a neighbour of both others.
CYCLE = {
    "first": places(0, 2, 4, 6),
    "near": places(1, 2, 0, 2, 0, 1),
    "state": ints(0, 1, 2),
    "position": ints(0, 1, 2),
}
NOISE = {
    "successors": np.array([[0, 1], [1, 0]], np.int32), "paid": ones(2, 2), "contexts": ints(0, 0), "sizes": ints(2),
    "low": np.full((1, 2), 0.25), "high": np.full((1, 2), 0.75),
    "classes": ints(0, -1), "blocks": ints(0, 1)[None], "least": np.zeros((1, 2)), "most": ones(1, 2),
}  # fmt: skip
NO_NOISE = (
    {"successors": np.array([[0, 2], [1, 0]], np.int32)}, {"successors": np.array([[0, -1], [1, 0]], np.int32)},
    {"paid": ones(2, 1)}, {"contexts": ints(0, 1)}, {"contexts": ints(0)}, {"sizes": ints(3)}, {"sizes": ints(0)},
    {"low": ones(1, 1)}, {"high": ones(2, 2)}, {"classes": ints(0)}, {"classes": ints(0, 1)}, {"classes": ints(-2, 0)},
    {"blocks": ints(0)[None]}, {"blocks": ints(0, 2)[None]}, {"blocks": ints(1, 0)[None]}, {"least": ones(2, 2)},
    {"most": ones(1, 1)},
)  # fmt: skip
BOUNDS = {"indptr": INDPTR, "successors": INDICES, "low": DATA / 2, "high": DATA, "unseen": np.full(2, 0.1)}
SETS = pessimism.row_sets(**BOUNDS, n_states=2), pessimism.noise_sets(**NOISE, n_states=2)
BOX = {"low": np.zeros((2, 2)), "high": ones(2, 2)}
BEST = best_rows.BestRows(*BOX.values())
TOLERANCES = (1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9)
ORDER = order_for(INDPTR, INDICES, 2, np.inf)


def newton(indptr, indices, data, state, order, products, costs):
    rows = Rows(indptr, indices, data, state, 0.0, order, products, 1e-9)
    return mixture_search.newton(rows, costs, ones(0), yes(2, 1), ints(0, 0)[None], ones(0), False, *TOLERANCES)


def eliminated(order, **changed):
    return sparse_elimination.unichain(INDPTR, INDICES, DATA, ints(0, 1), ones(1, 2), 0, 0.0, order._replace(**changed))


def plan_small(**given):
    return small_components.plan_small(small_components.Room(2, 1, 1e-9, 1e-9), *given.values(), 1e-9, 1e-9, 1e-9)


def averages(actions, **model):
    return sa_cvi_blocks.block_averages(actions, 2, 1, 0, 0, ints(1, 0), *model.values(), ones(1, 2, 1), 0)


def triple_qa(state, action, successor, cost):
    table, row = ones(2, 2, 2), ones(2)
    learner = TripleQA(
        table, table.copy(), ones(2, 2), np.ones((2, 2), np.int64), ones(1), ones(1), ones(2, 2), row, row,
        0.9, 1.0, 1.0, 1.0, 1.0, True,
    )  # fmt: skip
    learner.learn(state, action, successor, cost)


def recorder(state, action, successor, cost, length):
    rounds.Recorder(ints(0, 0), ints(0, 0), ones(2, 2), length, 2, 2).learn(state, action, successor, cost)


# A function, the arguments that it is called with by their names, and damaged ones.
SHORT = {"indices": places(0, 1), "data": ones(2)}
OUT = {"indices": places(0, 2, 0)}
BELOW = {"indices": places(0, -1, 0)}
DOWN = {"indptr": places(0, 4, 3)}
LATE = {"indptr": places(-1, 2, 3)}
NO_START = {"indptr": places()}
MATRIX = ({"indices": SHORT["indices"]}, {"data": SHORT["data"]}, OUT, BELOW, DOWN, LATE, NO_START)
GRAPH = ({"successors": places(0, 1)}, {"successors": places(0, 2, 0)}, {"successors": places(0, -1, 0)}, DOWN, LATE)
LISTS = (
    {"start": ints(0, 3)},
    {"start": ints(1, 2)},
    {"start": ints()},
    {"members": ints(0)},
    {"members": ints(0, 2)},
    {"members": ints(0, -1)},
)
T_MATRIX = tuple({f"t_{name}": value for name, value in bad.items()} for bad in MATRIX)
T_FLOW = tuple({"t_flow" if name == "t_data" else name: value for name, value in bad.items()} for bad in T_MATRIX)
F_MATRIX = tuple({"flow" if name == "data" else name: value for name, value in bad.items()} for bad in MATRIX)
LEVEL = {**CHAIN, "leaving": ones(2), "z": ones(2)}

CALLS = [
    (successors.support_of_sparse, {**CHAIN, "n_states": 2, "least": 0.0}, (*MATRIX, {"n_states": 1})),
    (csr.gathered, {**CHAIN, "rows": ints(1), "state": 0, "probability": 0.1},
     (*({"indices": places(0)}, {"data": ones(1)}), DOWN, LATE, NO_START,
      {"rows": ints(2)}, {"rows": ints(-1)}, {"state": -1}, {"state": 2**31})),
    (csr.by_columns, {**CHAIN, "n_columns": 2}, (*MATRIX, {"n_columns": 1}, {"n_columns": -1})),
    (csr.row_cdf, {"indptr": INDPTR, "probabilities": DATA}, (DOWN, LATE, NO_START, {"probabilities": ones(2)})),
    (products.sparse_times, {**CHAIN, "x": ones(2)}, (*MATRIX, {"x": ones(1)})),
    (products.times_sparse, {"x": ones(2), **CHAIN, "n_columns": 2}, (*MATRIX, {"x": ones(3)}, {"n_columns": 1})),
    (double_double.drift_sparse, {**CHAIN, "high": ones(2), "low": ones(2)}, (*MATRIX, {"high": ones(1)})),
    (double_double.drift_of_states,
     {**CHAIN, "high": ones(2), "low": ones(2), "begin": 0, "end": 1, "result": np.empty((2, 1))},
     ({"data": ones(1)}, OUT, BELOW, DOWN, LATE, NO_START, {"end": 3}, {"begin": -1}, {"begin": 2})),
    (aggregation.moves_of, CHAIN, MATRIX),
    (aggregation.scaled, {"indptr": INDPTR, "data": DATA, "mass": ones(2)},
     ({"data": ones(2)}, {"mass": ones(1)}, DOWN, LATE, NO_START)),
    (aggregation.per_mass, {"indptr": INDPTR, "flow": DATA.copy(), "mass": ones(2)},
     ({"flow": ones(2)}, {"mass": ones(1)}, DOWN, LATE, NO_START)),
    (aggregation.pairs_of,
     {**FLOW, "t_indptr": INDPTR, "t_indices": INDICES, "t_flow": DATA, "strong": 0.1}, (*F_MATRIX, *T_FLOW)),
    (aggregation.gathered, {**FLOW, "group": ints(0, 1), "k": 2},
     (*F_MATRIX, {"group": ints(0, 2)}, {"group": ints(-1, 0)}, {"group": ints(0)})),
    (aggregation.sums_of, {"group": ints(0, 1), "values": ones(2), "k": 2}, ({"group": ints(0, 2)}, {"k": -1})),
    (multigrid_steps.first_sweep, {**CHAIN, "inverse": ones(2), "r": ones(2), "z": ones(2)},
     (*MATRIX, {"inverse": ones(1)}, {"r": ones(3)}, {"z": ones(1)})),
    (multigrid_steps.sweep, {**CHAIN, "inverse": ones(2), "r": ones(2), "gain": 0.0, "z": ones(2), "down": True},
     (*MATRIX, {"inverse": ones(1)}, {"r": ones(3)}, {"z": ones(1)})),
    (multigrid_steps.sweep_distribution, {**COLUMNS, "inverse": ones(2), "x": ones(2), "down": True},
     (*T_MATRIX, {"inverse": ones(1)}, {"x": ones(1)})),
    (multigrid_steps.imbalance, {**COLUMNS, "leaving": ones(2), "x": ones(2)}, (*T_MATRIX, {"leaving": ones(1)})),
    (multigrid_steps.drift, {**LEVEL, "gain": 0.0, "out": ones(2)}, (*MATRIX, {"leaving": ones(1)}, {"out": ones(1)})),
    (multigrid_steps.lowered,
     {**CHAIN, "leaving": ones(2), "r": ones(2), "z": ones(2), "share": ones(2), "group": ints(0, 0), "out": ones(1)},
     (*MATRIX, {"share": ones(1)}, {"group": ints(0)}, {"group": ints(0, 1)}, {"group": ints(0, -1)})),
    (multigrid_steps.raised, {"group": ints(0, 0), "share": ones(2), "e": ones(1), "z": ones(2)},
     ({"group": ints(0, 1)}, {"group": ints(-1, 0)}, {"share": ones(1)}, {"e": ones(0)})),
    (moves.moves_away, {**CHAIN, "pairs": ints(0), "node": ints(0, 1), "n_actions": 1},
     (*MATRIX, {"pairs": ints(2)}, {"node": ints(0, 2)}, {"node": ints(0, -1)}, {"n_actions": 2})),
    (moves.inside_rows, {**CHAIN, "states": ints(0, 1), "available": yes(2, 1), "n_states": 2},
     (*MATRIX, {"states": ints(0, 2)}, {"states": ints(0, 0)}, {"available": yes(1, 1)})),
    (moves.swept,
     {**CHAIN, "first": ints(0, 1, 2), "backwards": ints(1, 0), "stay": ones(2), "per_move": 1.0, "sweeps": 2},
     (*MATRIX, {"first": ints(0, 3, 2)}, {"first": ints(0, 2)}, {"backwards": ints(2)}, {"backwards": ints(-1)})),
    (moves.improved,
     {**CHAIN, "first": ints(0, 1, 2), "stay": ones(2), "per_move": 1.0, "tolerance": 0.0, "x": ones(2),
      "choice": ints(-1, -1)},
     (*MATRIX, {"first": ints(0, 3, 2)}, {"x": ones(1)}, {"choice": ints(-1)})),
    (moves.largest_fall, {**CHAIN, "source": ints(0, 1), "x": ones(2)},
     (*MATRIX, {"source": ints(0, 2)}, {"source": ints(-1, 0)}, {"x": ones(1)})),
    (nested_dissection.tree, CYCLE,
     ({"near": places(1, 2, 0, 2, 0)}, {"near": places(1, 3, 0, 2, 0, 1)}, {"state": ints(0, 1, 3)},
      {"position": ints(0, 1, -1)}, {"position": ints(0, 1)})),
    (nested_dissection.filled,
     {**CYCLE, "parent": ints(1, 2, -1), "lower": ints(0, 0, 1, 3), "upper": ints(0, 2, 3, 3)},
     ({"near": places(1, 2, 0, 2, 0)}, {"near": places(1, 3, 0, 2, 0, 1)}, {"state": ints(0, 1, 3)},
      {"position": ints(0, 1, -1)}, {"parent": ints(1, 2)},
      {"parent": ints(-1, -1, -1), "near": places(1, 2, 0, 2, 0, 0)}, {"lower": ints(0, 1, 1, 3)},
      {"upper": ints(0, 1, 3, 3)}, {"lower": ints(0, 4, 1, 3)}, {"upper": ints(0, 0, 0, 9)})),
    (small_classes.solve_small_classes,
     {**CHAIN, "costs": ones(1, 2), **GROUPS, "gains": ones(1, 1), "biases": ones(1, 2), "distribution": ones(2)},
     (*MATRIX, *LISTS, {"start": ints(0, 1), "members": ints(0)}, {"start": ints(0, 0)}, {"gains": ones(1, 2)})),
    (policy_evaluation.evaluated,
     {"P": np.eye(2), "policy": ones(2, 1), "costs": ones(1, 2, 1), "initial": np.full(2, 0.5)},
     ({"P": ones(2, 1)}, {"P": ones(4, 2)}, {"policy": ones(2, 2)}, {"policy": ones(1, 1)}, {"costs": ones(1, 1, 1)},
      {"costs": ones(1, 2, 2)}, {"initial": ones(1)})),
    (policy_evaluation.rounds_to_settle,
     {"costs": ones(1, 2, 1), "available": yes(2, 1), "initial": ones(2), "biases": ones(1, 2), "settled": 0.01},
     ({"costs": ones(2, 2, 1)}, {"costs": ones(1, 1, 1)}, {"costs": ones(1, 2, 2)}, {"available": yes(1, 1)},
      {"available": yes(2, 2)}, {"initial": ones(1)}, {"biases": ones(1, 1)})),
    (occupancy.randomised_in, {"policy": ones(2, 2), "occupancy": ones(2, 2)},
     ({"policy": ones(1, 2)}, {"occupancy": ones(2, 1)})),
    (occupancy.add_frequencies,
     {"actions": ints(0, 1), "distribution": ones(2), "share": 0.5, "occupancy": ones(2, 2)},
     ({"actions": ints(0)}, {"actions": ints(0, 2)}, {"actions": ints(-1, 0)}, {"distribution": ones(1)},
      {"occupancy": ones(1, 2)})),
    (plan_small,
     {**CHAIN, "cost": ones(2), "inside": yes(2), **GROUPS, "policy": ints(0, 0), "bounds": ones(1),
      "potential": ones(2), "stationary": ones(2)},
     (*MATRIX, *LISTS, {"start": ints(0, 1), "members": ints(0)}, {"policy": ints(0, 1)}, {"policy": ints()},
      {"cost": ones(3)})),
    (transient.collect,
     {**WAY, "C": ones(2, 1), "exits": np.array([0.5, 0.75]), **GROUPS, "done": 0, "together": 2, "x": ones(2, 1)},
     ({"indices": places(1)}, {"indices": places(1, 2)}, {"data": ones(1)}, *LISTS, {"done": 2})),
    (visits.visit, {**WAY, "exits": np.array([0.5, 0.75]), **GROUPS, "done": 1, "together": 2, "y": ones(2)},
     ({"indices": places(1)}, {"indices": places(1, 2)}, {"data": ones(1)}, *LISTS, {"done": 2})),
    (pessimism.row_sets, {**BOUNDS, "n_states": 2},
     (*GRAPH, {"low": ones(2)}, {"high": ones(2)}, {"unseen": ones(1)}, {"n_states": 0})),
    (pessimism.noise_sets, {**NOISE, "n_states": 2}, (*NO_NOISE, {"n_states": 0}, {"n_states": 1})),
    *((pessimism.worst_means, {"sets": sets, "h": ones(2)}, ({"h": ones(0)}, {"h": ones(1)})) for sets in SETS),
    *((pessimism.worst_case,
       {"sets": sets, "policy": ones(2, 1), "costs": ones(2), "relying": np.zeros(2, np.bool_), "recovery": 0.0,
        "limit": 1.0, "sweeps": 2, "settled": 0.0, "h": np.zeros(2)},
       ({"costs": ones(1)}, {"policy": ones(1, 1)}, {"relying": np.zeros(1, np.bool_)}, {"h": np.zeros(1)}))
      for sets in SETS),
    (pessimism.distributions_of, {"sets": SETS[1], "h": ones(2), "pairs": ints(0)},
     ({"h": ones(1)}, {"pairs": ints(2)}, {"pairs": ints(-1)})),
    (least_squares_values.clipped_block, {"gains": ones(1, 2), **REGRESSION, "clip": 1.0},
     (*GRAPH, {"shares": ones(2)}, {"gains": ones(1, 3)}, {"gains": ones(2, 2)}, {"n_states": 0}, {"H": 0})),
    (least_squares_values.softmax_block, {"gains": ones(1, 2), **REGRESSION, "weights": ones(1), "sharpness": 1.0},
     (*GRAPH, {"shares": ones(2)}, {"gains": ones(1, 3)}, {"weights": ones(2)}, {"n_states": 0}, {"H": 0})),
    (sa_cvi.plan_block,
     {"H": 2, "reach": 1, "gains": ones(2), "indptr": INDPTR, "successors": INDICES, "frequencies": DATA,
      "increments": ints(1, 0), "final": ones(3), "clip": 1.0, "actions": np.zeros(6, np.uint16)},
     (*GRAPH, {"frequencies": ones(2)}, {"increments": ints(2, 0)}, {"actions": np.zeros(5, np.uint16)})),
    (averages, {"actions": np.zeros(6, np.uint16), **MODEL},
     (*GRAPH, {"probabilities": ones(2)}, {"actions": np.ones(6, np.uint16)})),
    (dirichlet.with_rest, {"indptr": INDPTR, "alpha": DATA, "rest": ones(2)}, (DOWN, LATE, {"alpha": ones(2)})),
    (dirichlet.split, {"indptr": INDPTR, "logs": np.zeros(5), "rest": ones(2), "floor": -9.0, "neglected": 1e-9},
     (DOWN, LATE, NO_START, {"logs": np.zeros(4)}, {"rest": ones(1)})),
    (dirichlet.assemble,
     {"indptr": INDPTR, "indices": INDICES, "p": DATA, "p_rest": np.zeros(2), "rest": np.zeros(2), "ends": -ones(2),
      "expected": 0.0, "n_states": 2, "rng": np.random.default_rng(0)},
     (DOWN, LATE, {"p": ones(2)}, {"ends": ones(1)}, {"expected": np.nan}, {"expected": np.inf})),
    (intervals.fill_intervals,
     {"indptr": INDPTR, "times": ints(1, 1, 2), "visits": ints(2, 2), "log_inverse": 1.0, "low": ones(3),
      "high": ones(3), "unseen": ones(2)}, (DOWN, LATE, {"times": ints(1, 1)}, {"low": ones(2)}, {"unseen": ones(1)})),
    (counts.merged,
     {"numbers": ints(5), "times": ints(1), "new_numbers": ints(5, 6), "new_times": ints(1, 1)},
     ({"new_numbers": ints(5, 5, 6), "new_times": ints(1, 1, 1)}, {"new_numbers": ints(6, 5)}, {"times": ints()},
      {"numbers": ints(7, 5), "times": ints(1, 1)})),
    (counts.update_likelihood,
     {"likelihood": ones(1, 1), "seen": ints(0), "visits": ints(2), "numbers": ints(0, 1), "times": ints(1, 1),
      "stored": ints(), "weights": ones(0), "rest": ones(1), "total": ones(1), "grid": ones(1), "n_states": 2},
     ({"numbers": ints(0, 1, 1), "times": ints(1, 1, 1), "seen": ints(0)}, {"times": ints(1)}, {"n_states": 0})),
    (costs.scaled_costs,
     {"costs": ones(2, 2, 1), "thresholds": ones(1), "available": yes(2, 1), "shift": ones(2), "scale": ones(2)},
     ({"shift": ones(1)}, {"scale": ones(1)}, {"shift": ones(0)}, {"available": yes(3, 1)}, {"thresholds": ones(2)})),
    (costs.ordinary_distance,
     {"costs": ones(2, 1), "available": yes(2, 1), "middle": 0.0, "few": 0.5, "apart": 2.0},
     ({"few": -1.0}, {"few": np.nan}, {"available": yes(1, 1)})),
    (sparse_improvement.look_ahead,
     {**CHAIN, "state": 0, "restart": 0.1, "cost": ones(2), "available": yes(2, 1), "policy": ints(0, 0), "h": ones(2),
      "gain": 0.0, "sweeps": 2, "tol": 0.0},
     (*MATRIX, {"state": 2}, {"state": -1}, {"cost": ones(1)}, {"h": ones(1)}, {"policy": ints(0)})),
    (outward_improvement.improve_outward,
     {**CHAIN, "cost": ones(2), "available": yes(2, 1), "policy": ints(0, 0), "h": ones(2), "gain": 0.0, "reference": 0,
      "tol": 0.0, "order": ORDER},
     (*MATRIX, {"reference": 2}, {"reference": -1}, {"cost": ones(1)}, {"h": ones(1)}, {"policy": ints(0)},
      {"policy": ints(0, 1)}, {"order": NO_ORDER})),
    (outward_improvement.until_reference,
     {"rows": (ones(1), ones(1), ones(2)), "cost": ones(2), "reference": 0, "order": ORDER},
     ({"reference": 2}, {"cost": ones(1)}, {"rows": (ones(1), ones(1), ones(1))},
      {"rows": (ones(2), ones(1), ones(2))})),
    (nested_dissection.outward, {"indptr": INDPTR, "indices": INDICES, "root": 0, "skipped": yes(2)},
     ({"root": 2}, {"root": -1}, {"skipped": yes(3)}, {"indices": places(0, 2, 0)})),
    (sparse_elimination.unichain,
     {**CHAIN, "rows": ints(0, 1), "costs": ones(1, 2), "reference": 0, "probability": 0.0, "order": ORDER},
     (*MATRIX, {"rows": ints(0, 2)}, {"reference": 2}, {"costs": ones(1, 3)})),
    (sparse_elimination.censored, {**CHAIN, "reference": 0, "probability": 0.0, "order": ORDER},
     (*MATRIX, {"reference": 2}, {"reference": -1})),
    (eliminated, {"order": ORDER},
     ({"position": ints(0, 2)}, {"state": ints(0, -1)}, {"state": ints(0)}, {"lower": ints(0, 2, 1)},
      {"upper": ints(0, 1)}, {"before": np.array([1], np.uint32)}, {"after": np.array([2], np.uint32)},
      {"runs": np.array([0, 9, 1], np.uint32)}, {"first": np.array([2], np.uint32)},
      {"begins": np.array([0, 9], np.uint32)})),
    (newton, {**CHAIN, "state": 0, "order": NO_ORDER, "products": 50, "costs": ones(1, 2)},
     (*MATRIX, {"state": 2}, {"costs": ones(1, 1)}, {"order": NO_ORDER._replace(position=ints(0))})),
    (drive_to_best.driven_to_best,
     {"P": np.eye(2), "costs": ones(1, 2), "weights": ones(1), "available": yes(2, 1), "policy": ints(0, 0),
      "favoured": 0, "least": 0.0, "same": 0.0}, ({"policy": ints(0, 1)}, {"policy": ints(0, -1)}, {"favoured": 2})),
    (boxes.likeliest_first, {**BOX, "policy": ints(0, 0)},
     ({"policy": ints(0, 1)}, {"high": ones(1, 2)}, {"low": ones(2, 0), "high": ones(2, 0), "policy": ints()})),
    (balls.move_to_first, {"p_bar": ones(1, 2), "radius": ones(1), "order": ints(0, 1)},
     ({"radius": ones(2)}, {"order": ints(0)}, {"order": ints(0, 2)}, {"order": ints(-1, 0)},
      {"p_bar": ones(1, 0), "order": ints()})),
    (trips.follow,
     {"states": ints(0, 1), "successors": ints(1, 0), "rewards": ones(2), "tables": np.zeros((5, 2, 2)),
      "last_visits": -ones(2), "rounds": 0, "earned": 0.0, "awaited": -1},
     ({"states": ints(0, 2)}, {"states": ints(0, -1)}, {"successors": ints(1)}, {"rewards": ones(1)},
      {"tables": np.zeros((4, 2, 2))}, {"tables": np.zeros((5, 2, 1))}, {"last_visits": -ones(1)})),
    (best_rows.BestRows, BOX, ({"high": ones(1, 2)}, {"low": ones(2, 0), "high": ones(2, 0)}, {"low": ones(3, 2)})),
    (optimism.optimistic_horizon,
     {"box": BEST, "costs": ones(1, 2), "weights": ones(1), "horizon": 2, "start": 0},
     ({"costs": ones(1, 3)}, {"weights": ones(2)}, {"horizon": 0}, {"start": 2}, {"start": -1})),
    (optimism.improve_optimistic,
     {"box": BEST, "costs": ones(1, 2), "weights": ones(1), "policy": ints(0, 0), "kernel": np.eye(2),
      "biases": ones(1, 2), "tol": 0.0}, ({"policy": ints(0, 1)}, {"policy": ints(-1, 0)}, {"kernel": ones(1, 2)})),
    (optimism.drive_to, {**BOX, "inside": np.array([2, 0], np.uint8), "policy": ints(0, 0), "kernel": np.eye(2)},
     ({"low": ones(2, 0), "high": ones(2, 0)}, {"inside": yes(1)}, {"policy": ints(0)}, {"policy": ints(0, 1)})),
    (improvement.rounding_of_bound, {"P": np.eye(2), "weights": ones(1), "biases": ones(1, 2)},
     ({"P": ones(2, 0), "biases": ones(1, 0)}, {"P": ones(3, 2)}, {"weights": ones(2)})),
    (attractor.attract_dense,
     {"P": np.eye(2), "available": yes(2, 1), "inside": yes(2), "policy": ints(0, 0), "least": 0.0, "keeps": True},
     ({"P": ones(1, 2)}, {"P": ones(2, 1)}, {"policy": ints(0, 1)}, {"policy": ints(0)}, {"inside": yes(1)})),
    (attractor.attract_sparse,
     {**CHAIN, "available": yes(2, 1), "inside": yes(2), "policy": ints(0, 0), "least": 0.0, "keeps": True},
     (*MATRIX, {"policy": ints(0, 1)}, {"policy": ints(0)}, {"inside": yes(1)})),
    (play_loop.expected_averages, {"policy": ones(2, 2, 1), **MODEL, "costs": ones(1, 2, 1), "state": 0},
     (*GRAPH, {"probabilities": ones(2)}, {"costs": ones(1, 1, 1)}, {"state": 2})),
    (rounds.LastRound(2).learn, {"state": 0, "action": 0, "successor": 0, "costs": ones(2)}, ({"costs": ones(1)},)),
    (triple_qa, {"state": 1, "action": 1, "successor": 1, "cost": ones(2)},
     ({"state": 2}, {"state": -1}, {"action": 2}, {"successor": 2}, {"successor": -1}, {"cost": ones(1)})),
    (recorder, {"state": 1, "action": 1, "successor": 1, "cost": ones(2), "length": ints(0)},
     ({"state": 2}, {"state": -1}, {"action": 2}, {"successor": 2}, {"cost": ones(1)}, {"length": ints(-1)},
      {"length": ints(0, 0)})),
]  # fmt: skip


def called(function, given, damage):
    """Call the function on copies of its arguments, some of them damaged: it may write to them."""
    arguments = given | damage
    if function is eliminated:
        return function(given["order"], **damage)
    copies = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
    return function(**copies) if function in (plan_small, averages) else function(*copies.values())


@pytest.mark.parametrize(("function", "given", "damages"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_does_not_fit_is_refused_before_it_is_used(function, given, damages):
    called(function, given, {})
    for damage in damages:
        with pytest.raises(ValueError, match=r"^[a-z][^\n]*$"):
            called(function, given, damage)


def test_rows_that_are_met_again_and_again_have_fewer_than_2_31_entries():
    """The error comes before memory is allocated for them."""
    long, again = 2**16, np.zeros(2**15, np.int64)
    row = places(0, long), np.zeros(long, np.int32), ones(long)
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31 entries"):
        csr.gathered(*row, again, 0, 0.0)
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31 entries"):
        moves.moves_away(*row, again, ints(0), 1)


def test_entries_of_zero_lead_nowhere_in_the_long_run():
    """The first state is absorbing. A stored zero leads on to the second, which would leave for the third."""
    indptr, successors_ = places(0, 2, 4, 5), places(0, 1, 0, 2, 2)
    gains, model = np.full((1, 3), np.nan), (indptr, successors_, np.array([1.0, 0.0, 0.5, 0.5, 1.0]))
    costs_ = np.array([[[3.0], [4.0], [5.0]]])
    _, met, ends = small_classes.long_run(ones(3, 1), 0.0, *model, costs_, 0, 3, gains)
    assert (met.tolist(), ends.tolist(), gains[0, 0]) == ([True, False, False], [0], 3.0)
