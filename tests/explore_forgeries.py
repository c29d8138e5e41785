"""Forges proofs of degenerate models and compares what the checker accepts with the truth: ``make test-forgeries``.

Models and forgeries are those of ``forgeries``, with new seeds at every run. The exit code is 1 if an accepted proof
says something that is not true; its seed is printed. Ctrl-C ends the search and prints the counts.

    python tests/explore_forgeries.py --models 500 --jobs 2
    python tests/explore_forgeries.py --models 1 --seed 12345     # the same model and forgeries again
"""

import argparse
import secrets
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

from forgeries import searched


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200, help="number of models")
    parser.add_argument("--tries", type=int, default=40, help="forgeries for each model")
    parser.add_argument("--seed", type=int, default=None, help="seed of the first model (default: new)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    options = parser.parse_args(arguments)
    base = secrets.randbelow(10**9) if options.seed is None else options.seed
    print(f"base seed {base}", flush=True)
    counts: Counter[str] = Counter()
    failures = 0
    seeds = range(base, base + options.models)
    with suppress(KeyboardInterrupt), get_context("spawn").Pool(options.jobs) as pool:
        for found in pool.imap_unordered(partial(searched, tries=options.tries), seeds):
            counts += found.verdicts
            counts["forgeries"] += found.tried
            failures += len(found.false)
            for false in found.false:
                print(f"FALSE seed {found.seed}: {false}", flush=True)
    for name, number in sorted(counts.items()):
        print(f"{number:8d}  {name}")
    print(f"{failures:8d}  accepted with a claim that is not true")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
