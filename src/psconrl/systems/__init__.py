"""Systems described by their owner: variables, noise or events, a step, costs and limits, of which models are made.

>>> import psconrl
>>> from psconrl.systems import Gamma, Poisson, System
>>> shop = System(
...     state={"shelf": range(9)}, action={"order": range(5)}, noise={"demand": Poisson(Gamma(2, 1), most=10)},
...     step={"shelf": "min(max(shelf - demand, 0) + order, 8)"},
...     costs={"holding": "0.1 * shelf", "lost": "max(demand - shelf, 0)"},
...     minimise="holding", limits=["lost / demand <= 2%"])
>>> shop
System(shelf; order; unknown: demand)
>>> print(psconrl.plan(shop, demand=2.3))
minimise holding: 0.607591 (optimal)
  lost / demand <= 0.02 holds with 0.02; one percentage point more of lost / demand is worth 0.05434
"""

from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Event", "Gamma", "Geometric", "Joint", "Poisson", "System"]
