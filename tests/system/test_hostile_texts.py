"""Small texts that ask for much: systems, specs and models are read, or refused by a short message, in a moment."""

import json
import sys

import pytest

from test_hostile_files import SECONDS, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")

READ = None  # instead of the words of an error


def system(top="", *, state="x = 3", action="a = 2", step='x = "min(x + a, 2)"', costs='c = "x"', rest=""):
    return f'minimise = "c"\n{top}\n[state]\n{state}\n[action]\n{action}\n[step]\n{step}\n[costs]\n{costs}\n{rest}\n'


def lines(n, template):
    return "\n".join(template.format(i) for i in range(n))


SPEC = '[experiments.box]\nenv = "box"\nagents = ["psconrl"]\nhorizon = 10\n'
LONG, TOWER = "y" * 100_000, "((((9**64)**64)**64)**64)**64"
SYSTEMS = {
    "a wide name": (system('state_names = "{x:>400000000}"'), "state_names: {x:>400000000}: after the colon"),
    "a deep name": (system('state_names = "{x.__class__}"'), "state_names: unknown variable 'x.__class__'; known: x"),
    "a long name": (system(f'state_names = "{LONG}"'), "state_names must have at most 1,000 characters"),
    "equal names": (system('state_names = "x"', state="x = 50_000", step='x = "max(x - 1, 0) if a else 49_999"'),
                    "state_names must be distinct"),
    "many long names": (system(f'state_names = "{"ü" * 900}{{x}}"', state="x = 500_000", step='x = "499_999 - x"',
                               rest="[start]\nx = 0"), READ),
    "all long names": (system(f'state_names = "{"ü" * 900}{{x}}"', state="x = 500_000", step='x = "(x + 1) % 500_000"'),
                       "a list of 500,000 state_names takes 1.86 GB, more than 1 GB"),
    "a tower in a limit": (system(f'limits = ["c <= {TOWER}"]'), "a limit needs a finite number; got inf"),
    "a tower in a cost": (system(costs='c = "9**9**9**x"'), "the cost 'c'"),
    "a long number": (system(costs=f'c = "0x{"f" * 1900}"'), "a whole number has more than 308 digits"),
    "a longer number": (system(costs="c = " + "9" * 5000), "not valid TOML: Exceeds the limit"),
    "a repeated text": (system(costs="c = \"'y' * 10**9\""), "\"'y'\" is text, and cannot be calculated with"),
    "minus signs": (system(costs=f'c = "{"-" * 1500}x"'), "100 terms or nesting levels"),
    "parentheses": (system(costs=f'c = "{"(" * 900}x{")" * 900}"'), "is no expression"),
    "a call": (system(costs="c = \"__import__('os')\""), "unknown function '__import__'"),
    "a long range": (system(state="x = { from = 0, to = 1_000_000_000 }"), "'x' with 1e+09 values takes"),
    "a longer range": (system(state="x = { from = 0, to = 99999999999999999999 }"), "'x' with inf values takes"),
    "large numbers": (system(state=f"x = {{ from = {10**20}, to = {10**20} }}"), "must be numbers"),
    "many actions": (system(action="a = 100_000_000"), "'a' with 1e+08 values takes"),
    "many combinations": (system(state=lines(70, "v{} = 2"), step=lines(70, 'v{0} = "v{0}"')), "too many to number"),
    "many variables": (system(state=lines(1000, "x{} = 1"), step=lines(1000, 'x{0} = "x{0}"'), costs="c = 1"), READ),
    "many values of a noise": (system(rest='[noise.d]\ndistribution = "poisson"\nrate = 1\nmost = 10_000_000'),
                               "most must be a whole number from 1 to 9999"),
    "noise in a cycle": (system(rest='[noise.d]\ndistribution = "bernoulli"\np = "d"'), "depends on itself"),
    "a long key": (system(f'{LONG} = 1'), "unknown key 'yyyyy"),
    "a long noise": (system(rest=f'[noise.{LONG}]\ndistribution = "x"'), "[noise.yyyyy"),
    "a long distribution": (system(rest=f'[noise.d]\ndistribution = "{LONG}"'), "unknown distribution 'yyyyy"),
    "a long value": (system(f'units = {{ round = ["{LONG}"] }}'), "units: round must be text such as 'hour'; got ['y"),
    "a noise from right to left": (system(rest='[noise."\u202e"]\ndistribution = "x"'), "[noise.\ufffd]"),
    "a key with a bell": (system('"\\u0007" = 1'), r"unknown key '\x07'"),
    "a date": (system(state="x = [1979-05-27]"), "must be numbers, or texts; got [datetime.date(1979, 5, 27)]"),
    "not a number": (system(state="x = [nan]"), "the values of 'x' must be finite"),
    "an infinite number": (system("clock = inf"), "clock"),
    "a key twice": ('minimise = "c"\nminimise = "d"', "not valid TOML: Cannot overwrite a value"),
    "brackets": ("a = " + "[" * 500_000, "nested at most 20 levels deep"),
    "dots": (".".join("a" * 50_000) + " = 1", "a key has at most 100 parts"),
    "digits": ("a = " + "9" * 900_000, "not valid TOML"),
    "not UTF-8": (b'minimise = "\xff"', "not UTF-8 (invalid start byte at byte 12)"),
    "UTF-16": (system().encode("utf-16"), "not UTF-8"),
    "zeros": (bytes(1000), "not valid TOML"),
    "too long": (b"#" * 2_000_000, "at most 1,000,000 bytes"),
    "nothing": (b"", "the table [state] is missing"),
}  # fmt: skip
SPECS = {
    "costs in a list": (SPEC + 'costs = [["known"]]', "unknown costs \"['known']\""),
    "a large grid": (SPEC + "[agents.psconrl]\n" + lines(6, f"grid.k{{}} = {list(range(1000))}"), "a sweep of"),
    "many replicates": (SPEC + "replicates = 1_000_000_000", "a sweep of 1,000,000,000 runs takes"),
    "a long label": (SPEC + f'[agents.{LONG}]\nagent = "x"', "[agents.yyyyy"),
    "a label that steers": (SPEC + '[agents."\\u001b[2J"]\nagent = "x"', "[agents.\u241b[2J]"),
    "an endless table": (SPEC + "options = " + "{ a = " * 300 + "1" + " }" * 300, "nested at most 20 levels deep"),
}  # fmt: skip


def model_with_names(names):
    S = len(names)
    transition = {"shape": [S, S], "entries": [[s, s, 1.0] for s in range(S)]}
    return {"transition": transition, "costs": [[[0.0]] * S], "state_names": names}


def test_texts_that_ask_for_much(tmp_path):
    """All in one process, which may take 200 MB; each in seconds."""
    names = [str(s) for s in range(100_000)]
    cases = [("system", f"{name}.toml", *case) for name, case in SYSTEMS.items()]
    cases += [("spec", f"{name} (spec).toml", *case) for name, case in SPECS.items()]
    cases.append(("model", "names.json", json.dumps(model_with_names([*names, "0"])), "must be distinct; '0' repeats"))
    cases.append(("model", "surrogate.json", json.dumps(model_with_names(["\ud800"])), r"state_names: '\ud800' is no"))
    for _, name, content, _ in cases:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    wrong = []
    for (_, name, _, words), line in zip(
        cases, run([(kind, tmp_path / name) for kind, name, *_ in cases]), strict=True
    ):
        seconds, _, message = line.partition(" ")
        if words is READ:
            wrong += [line] if line != f"read {tmp_path / name}" else []
        elif words not in message or float(seconds) >= SECONDS:
            wrong.append(f"{name}: {line}")
    assert not wrong, "\n".join(wrong)
