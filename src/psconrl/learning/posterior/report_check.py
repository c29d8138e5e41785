"""The check that reports of a system's noise, which were read from a file, are possible in the system.

A report is possible if its outcomes explain the transition, and if the transition was seen as often as it was reported.
"""

from collections import Counter
from itertools import pairwise

from psconrl.base.saved_fields import in_field, need_that
from psconrl.learning.posterior.counts import Seen
from psconrl.learning.posterior.seen_noise import KEY_LENGTHS
from psconrl.systems.events import EventClock
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary


def check_reports(seen: Seen, structure: Structure, words: Vocabulary | None) -> None:
    """Raise an error unless what was seen of the noise is possible; ``words`` are needed where noise was reported."""
    noise, S, W = seen.noise, structure.n_states, structure.randomness.n_outcomes
    possible, contexts = structure.randomness.possible(), structure.contexts
    events = isinstance(structure.randomness, EventClock)

    def outcomes(pair: int, cells: list[int]) -> list[int]:
        need_that(pair < contexts.size, f"must be of pairs below {contexts.size:,}")
        rising = all(one < two for one, two in pairwise(cells))
        inside = all(cell // W == contexts[pair] and possible[contexts[pair], cell % W] for cell in cells)
        need_that(rising and inside, "must have outcomes that are possible, in increasing order")
        return [cell % W for cell in cells]

    reported = Counter[int]()
    for kind, rounds in noise.kinds.items():
        with in_field(kind):
            for key, times in rounds.items():
                if kind == "ends":
                    outcomes(key[0], list(key[1:]))
                    need_that(events, "must be missing, since there are no events")
                    continue
                number, cells = key[0], list(key[KEY_LENGTHS[kind] :])
                if kind in ("noise", "named"):
                    need_that(words is None or _are_named(kind, key[1], words), "must be of what the system names")
                reported[number] += times
                need_that(kind != "ticks" or not cells, "must be transitions alone")
                explains = (
                    structure.successors[number // S, one] == number % S for one in outcomes(number // S, cells)
                )
                need_that(all(explains), "must have outcomes that explain the transition")
    with in_field("sojourns"):
        need_that(events or not noise.sojourns, "must be missing, since there are no events")
        need_that(all(pair < contexts.size for pair, _ in noise.sojourns), f"must be of pairs below {contexts.size:,}")
    with in_field("followed"):
        numbers, highest = contexts.size * S, len(possible) * W
        fits = all(key[0] < numbers and all(0 <= cell < highest for cell in key[1:]) for key in noise.followed)
        need_that(fits, "must be transitions and outcomes of the system")
    seen_times = dict(zip(seen.tally.numbers.tolist(), seen.tally.times.tolist(), strict=True))
    often = all(times <= seen_times.get(number, 0) for number, times in reported.items())
    need_that(often, "must not be of more rounds than the transitions were seen in")


def _are_named(kind: str, bits: int, words: Vocabulary) -> bool:
    """Return whether the bits of a report stand for noises, or for costs."""
    if kind == "noise":
        return bits < 1 << len(words.outcomes)
    return 0 < bits < 1 << len(words.cost_names)
