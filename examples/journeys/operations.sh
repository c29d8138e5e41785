# From an empty folder to a policy on the wall and an agent that learns: a ward with two kinds of patients.
# Run it in an empty folder: bash operations.sh
set -eu

cat > ward.py <<'PYTHON'
"""The model: patients of two kinds, 8 beds, two staff levels, and whether planned admissions are open."""
import numpy as np
import psconrl

def ward(arrivals=(0.05, 0.10), leaves=0.02, beds=8):
    states = [(u, p) for u in range(beds + 1) for p in range(beds + 1 - u)]
    actions = [(nurses, let_in) for nurses in (2, 3) for let_in in (0, 1)]
    number = {state: s for s, state in enumerate(states)}
    P = np.zeros((len(states), len(actions), len(states)))
    treated, staff, refused = np.zeros((3, len(states), len(actions)))
    for s, (u, p) in enumerate(states):
        for a, (nurses, let_in) in enumerate(actions):
            full = u + p == beds
            rates = {(u + 1, p): arrivals[0] * (not full), (u, p + 1): arrivals[1] * let_in * (not full),
                     (u - 1, p): leaves * u * nurses / 2, (u, p - 1): leaves * p * nurses / 2}
            for to, rate in rates.items():
                if rate:
                    P[s, a, number[to]] += rate
            P[s, a, s] += 1 - P[s, a].sum()
            treated[s, a], staff[s, a], refused[s, a] = rates[u, p + 1], nurses, full
    return psconrl.CMDP.from_rewards(
        P, treated, [staff, refused], {"staff": 2.5, "refused": 0.0002}, cost_names=["treated", "staff", "refused"],
        state_names=[f"{u} urgent, {p} planned" for u, p in states],
        action_names=[f"{n} nurses, {'open' if i else 'closed'}" for n, i in actions],
        units=psconrl.Units("hour", {"treated": "patients"}, {"staff": "nurses", "refused": "of urgent patients"}))

psconrl.save(ward(), "ward.npz")
psconrl.save(ward(arrivals=(0.04, 0.12)), "rough.npz")  # from an old simulation
PYTHON
python ward.py

psconrl inspect ward.npz
psconrl solve ward.npz || test $? = 3  # the limits cannot be met; the output says which can
psconrl solve ward.npz --threshold refused=0.02 --policy wall.csv --save plan.npz --plot policy.png
psconrl explain ward.npz --threshold refused=0.02 --state "3 urgent, 3 planned"
psconrl pareto ward.npz --threshold refused=0.02 --constraint refused --points 9 --plot price.png

cat > serve.py <<'PYTHON'
"""The program that runs on the ward."""
import psconrl

plan = psconrl.Plan.load("plan.npz")
print(plan.act("3 urgent, 3 planned"))
PYTHON
python serve.py

# If the model is only roughly known: learn during operation, starting from the rough model. Save the run and resume it.
psconrl learn ward.npz --threshold refused=0.02 --trust rough.npz --horizon 2000 --log learning.csv --save run.npz
psconrl learn ward.npz --threshold refused=0.02 --horizon 4000 --log learning.csv --resume run.npz
psconrl monitor learning.csv --once watched.html  # without --once: a page that refreshes while it learns
