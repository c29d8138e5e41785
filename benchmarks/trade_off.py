"""Cost of trade-off curves and surfaces: CPU seconds, each point from its neighbours and each from scratch.

python benchmarks/trade_off.py
"""

import time

import psconrl
from psconrl import CMDP


def seconds(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main():
    sparse = psconrl.load("ward", beds=16)
    dense = CMDP(
        sparse.transition.toarray(), sparse.costs, sparse.thresholds, cost_names=sparse.cost_names, maximise=True
    )
    psconrl.pareto(psconrl.load("ward", beds=6, refused=0.5, occupied=6), "refused", points=2)
    for name, model in (("sparse", sparse), ("stored dense", dense)):
        curve_time, curve = seconds(lambda model=model: psconrl.pareto(model, "refused", points=9))
        limits = [model.with_thresholds({"refused": level}) for level in curve.thresholds]
        alone, plans = seconds(lambda limits=limits: [psconrl.plan(limited) for limited in limits])
        assert all(abs(a.value - b.value) < 1e-8 for a, b in zip(plans, curve.plans, strict=True))
        print(f"ward of {model.n_states} states, {name}: 9 points {curve_time:.2f} s, from scratch {alone:.2f} s")
    surface_time, surface = seconds(lambda: psconrl.pareto_surface(sparse, ["staff", "refused"], points=5))
    print(f"surface of {surface.values.size} points: {surface_time:.2f} s")


if __name__ == "__main__":
    main()
