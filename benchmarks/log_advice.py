"""How long advice takes for a system of about a thousand states, three shelves that one truck refills.

python benchmarks/log_advice.py --room 9 --rounds 5000
"""

import argparse
import time

import numpy as np

import psconrl
from psconrl.agents import FixedPolicy


def main() -> None:
    """Print the seconds of every step, on the clock and of the processor."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--room", type=int, default=9, help="of a shelf; there are (room + 1)^3 states")
    parser.add_argument("--rounds", type=int, default=5000)
    options = parser.parse_args()
    table = written(options.room, options.rounds)
    system = psconrl.load_system("stock", room=options.room)
    log = timed("read", lambda: psconrl.Log(table, system=system))
    timed("check", log.check)
    timed("averages", log.averages)
    advice = timed("improve", log.improve)
    print(log)
    print(advice)


def written(room: int, rounds: int) -> dict[str, np.ndarray]:
    """Return the columns of a log of a truck that is sent at random in almost half of the rounds."""
    system = psconrl.load_system("stock", room=room, known=True)
    model = system.model()
    policy = np.tile([0.55, 0.15, 0.15, 0.15], (model.n_states, 1))
    agent = FixedPolicy(model.n_states, model.n_actions, model.thresholds, policy=policy, seed=1)
    played = psconrl.simulate(system, agent, rounds, seed=1, trajectory=True).trajectory
    assert played is not None
    states = np.append(np.asarray(played.states[:-1]), played.next_states[-1])
    actions = np.append(played.actions, 0)
    columns = {name: np.asarray(values)[states] for name, values in system.state_table.items()}
    return columns | {name: np.asarray(values)[actions] for name, values in system.action_table.items()}


def timed(what: str, call):
    """Return what a call returns, and print how long it took."""
    clock, processor = time.perf_counter(), time.process_time()
    found = call()
    print(
        f"{what:10} {time.perf_counter() - clock:7.1f} s, {time.process_time() - processor:7.1f} s of the processor",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
