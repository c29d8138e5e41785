"""A clinic and a call centre in SimPy, which shares nothing with the library, and the tables that they write."""

import numpy as np
import simpy

MOST_WAITING = 8
MOST_CALLS = 12
AFTER = 1e-9  # a slot is recorded just after it begins, when the doctor has taken the next patient


class Clinic:
    """One doctor; a treatment takes two to four slots; in every slot patients are admitted or sent away.

    The number of patients who wait is no Markov process: how long the treatment has lasted is needed, too.
    """

    def __init__(self, slots, seed, rate=0.3, last_rate=None):
        self.rng, self.slots = np.random.default_rng(seed), slots
        self.rate, self.last_rate = rate, rate if last_rate is None else last_rate
        self.env, self.waiting, self.age, self.admit, self.arrived = simpy.Environment(), 0, 0, 1, 0
        self.rows = []
        for process in (self.doctor(), self.patients(), self.clock()):
            self.env.process(process)
        self.env.run(until=slots + 2 * AFTER)

    def doctor(self):
        while True:
            if self.waiting == 0:
                self.age = 0
                yield self.env.timeout(1)
                continue
            self.waiting -= 1
            for age in range(1, int(self.rng.choice([2, 3, 4], p=[0.3, 0.4, 0.3])) + 1):
                self.age = age
                yield self.env.timeout(1)

    def patients(self):
        """Arrivals of a Poisson process whose rate changes from the first slot to the last."""
        most = max(self.rate, self.last_rate)
        while True:
            yield self.env.timeout(self.rng.exponential(1 / most))
            rate = self.rate + (self.last_rate - self.rate) * self.env.now / self.slots
            if self.rng.random() < rate / most:
                self.arrived += 1
                if self.admit:
                    self.waiting = min(self.waiting + 1, MOST_WAITING)

    def clock(self):
        yield self.env.timeout(AFTER)
        while True:
            if self.rows:
                self.rows[-1].append(self.arrived)
            self.admit, self.arrived = int(self.rng.random() < 0.8), 0
            self.rows.append([self.waiting, self.age, self.admit])
            yield self.env.timeout(1)

    def table(self):
        """Columns of a log, one row a slot."""
        rows = np.array(self.rows[:-1])
        return dict(zip(("waiting", "age", "admit", "arrivals"), rows.T, strict=True))


class CallCentre:
    """Three agents and callers who hang up; in some slots, half of the callers are sent to another centre.

    Calls, patience and the times between calls are exponential, so the number of calls is a Markov process.
    """

    def __init__(self, slots, seed, rate=2.0, last_rate=None):
        self.rng, self.slots = np.random.default_rng(seed), slots
        self.rate, self.last_rate = rate, rate if last_rate is None else last_rate
        self.env, self.calls, self.lost, self.divert = simpy.Environment(), 0, 0, 0
        self.agents = simpy.Resource(self.env, capacity=3)
        self.rows = []
        self.env.process(self.callers())
        self.env.process(self.clock())
        self.env.run(until=slots + 0.5)

    def callers(self):
        most = max(self.rate, self.last_rate)
        while True:
            yield self.env.timeout(self.rng.exponential(1 / most))
            rate = self.rate + (self.last_rate - self.rate) * self.env.now / self.slots
            if self.rng.random() < rate / most * (0.5 if self.divert else 1.0) and self.calls < MOST_CALLS:
                self.env.process(self.call())

    def call(self):
        self.calls += 1
        with self.agents.request() as agent:
            found = yield agent | self.env.timeout(self.rng.exponential(2.0))
            if agent in found:
                yield self.env.timeout(self.rng.exponential(2.0))
            else:
                self.lost += 1
        self.calls -= 1

    def clock(self):
        while True:
            if self.rows:
                self.rows[-1].append(self.lost)
            self.divert, self.lost = int(self.rng.random() < 0.5), 0
            self.rows.append([self.calls, self.divert])
            yield self.env.timeout(1)

    def table(self):
        """Columns of a log, one row a slot."""
        return dict(zip(("calls", "divert", "lost"), np.array(self.rows[:-1]).T, strict=True))
