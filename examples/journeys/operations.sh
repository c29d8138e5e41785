# From an empty folder to a policy on the wall and an agent that learns: a ward with two kinds of patients.
# Run it in an empty folder: bash operations.sh
set -eu

cat > ward.toml <<'TOML'
# 8 beds, 2 or 3 nurses on duty, and planned admissions open or closed. Rates are per hour; a round is an hour.
version = 1
maximise = "treated"
limits = { staff = "nurses <= 2.5", refused = "refused <= 0.0002" }
clock = 1
state_names = "{urgent} urgent, {planned} planned"
action_names = "{nurses} nurses, {admissions}"
state = { urgent = 9, planned = 9 }
action = { nurses = [2, 3], admissions = ["closed", "open"] }
costs = { treated = 0, refused = "urgent + planned == 8" }

[events] # unknown rates: our estimates, each worth 200 hours of observation
urgent_comes = { rate = { prior = "gamma", about = 0.04, worth = 200 }, step = { urgent = "urgent + 1" }, when = "urgent + planned < 8" }
planned_comes = { rate = { prior = "gamma", about = 0.12, worth = 200 }, step = { planned = "planned + 1" }, when = "urgent + planned < 8 and admissions == 'open'", costs = { treated = 1 } }
urgent_leaves = { rate = 0.02, step = { urgent = "urgent - 1" }, times = "urgent * nurses / 2" }
planned_leaves = { rate = 0.02, step = { planned = "planned - 1" }, times = "planned * nurses / 2" }

[units]
round = "hour"
counted = { treated = "patients" }
levels = { staff = "nurses", refused = "of urgent patients" }
TOML

# What we would do if the rates were these; the last option of each command says so.
rates="--set urgent_comes=0.05 --set planned_comes=0.1"
psconrl inspect ward.toml $rates
psconrl solve ward.toml $rates || test $? = 3  # the limits cannot be met; the output says which can
psconrl solve ward.toml --threshold refused=0.02 --policy wall.csv --save plan.npz --plot policy.png $rates
psconrl explain ward.toml --threshold refused=0.02 --state "3 urgent, 3 planned" $rates
psconrl pareto ward.toml --threshold refused=0.02 --constraint refused --points 9 --plot price.png $rates

cat > serve.py <<'PYTHON'
"""The program that runs on the ward."""
import psconrl

plan = psconrl.Plan.load("plan.npz")
print(plan.act("3 urgent, 3 planned"))
PYTHON
python serve.py

# The rates are not known: learn them during operation. Here they are true in the simulated ward, and the agent begins
# with the estimates in the file. Save the run and resume it.
psconrl learn ward.toml --threshold refused=0.02 --horizon 2000 --log learning.csv --save run.npz $rates
psconrl learn ward.toml --threshold refused=0.02 --horizon 4000 --log learning.csv --resume run.npz $rates
psconrl monitor learning.csv --once watched.html  # without --once: a page that refreshes while it learns
