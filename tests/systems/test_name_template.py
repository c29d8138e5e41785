"""Names from templates: what ``str.format`` would write, for the forms that are allowed; nothing else is."""

import math
import string
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psconrl.errors import ModelError
from psconrl.systems.name_template import MOST_DECIMALS, MOST_TEMPLATE, MOST_WIDTH, NameTemplate
from psconrl.systems.system import System
from psconrl.systems.variables import Space

VALUES = {
    "n": np.array([-7, 0, 123456789]),
    "level": np.array([-0.1, 1 / 3, 1.7e308, 5e-324]),
    "to": np.array(["left", "größer", ""]),
    "日": np.array([2**64 - 1], dtype=np.uint64),
}
TEXTS = st.text(st.characters(exclude_characters="{}\n", exclude_categories=["Cs"]), max_size=5)
WIDTHS = st.integers(1, MOST_WIDTH).map(str)
DECIMALS = st.integers(0, MOST_DECIMALS).map(".{}f".format)
ANY_FORM = st.tuples(st.sampled_from(["", "<", ">", "^"]), WIDTHS).map("".join) | st.just("")
NUMBER_FORM = st.tuples(ANY_FORM | WIDTHS.map("0{}".format), DECIMALS | st.just("")).map("".join)


def field(name):
    forms = ANY_FORM if VALUES[name].dtype.kind == "U" else NUMBER_FORM
    return forms.map(lambda form: f"{{{name}:{form}}}") | st.just(f"{{{name}}}")


TEMPLATES = st.lists(TEXTS | st.sampled_from(["{{", "}}"]) | st.sampled_from([*VALUES]).flatmap(field), max_size=6)


def rows():
    """All combinations of the values, by variable."""
    space = np.indices([v.size for v in VALUES.values()]).reshape(len(VALUES), -1)
    return {name: values[place] for (name, values), place in zip(VALUES.items(), space, strict=True)}


@given(TEMPLATES.map("".join))
def test_a_template_writes_what_str_format_writes(text):
    columns = rows()
    n = columns["n"].size
    names = NameTemplate.read(text, VALUES, "state_names").names(columns, n)
    plain = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    assert names == [text.format(**row) for row in plain]


@given(TEMPLATES.map("".join))
def test_the_memory_of_names_is_not_underrated(text):
    columns = rows()
    template, n = NameTemplate.read(text, VALUES, "state_names"), columns["n"].size
    size = sum(sys.getsizeof(name) + 8 for name in template.names(columns, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSCONRL_MEMORY_GB", repr(math.nextafter(size / 1e9, 0.0) * (1 - 1e-9)))
        with pytest.raises(ModelError, match=f"a list of {n} state_names takes"):
            template.names(columns, n)


def test_the_longest_number_need_not_be_the_largest():
    """A third takes 18 characters, although zero and one take three."""
    template = NameTemplate.read("{level}" * 100, {"level": np.array([0.0, 1 / 3, 1.0])}, "state_names")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSCONRL_MEMORY_GB", "1.8e-6")
        with pytest.raises(ModelError, match="a list of 1 state_names takes"):
            template.names({"level": np.array([1 / 3])}, 1)


def test_a_list_of_short_names_is_rated_as_short():
    """A million names of ten characters fit into less than .2 GB."""
    many = NameTemplate.read("{n:9}!", {"n": np.arange(3)}, "state_names")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSCONRL_MEMORY_GB", "0.2")
        assert many.names({"n": np.arange(3)}, 3) == ["        0!", "        1!", "        2!"]
        with pytest.raises(ModelError, match=r"a list of 10,000,000 state_names takes 1\.06 GB"):
            many.names({}, 10**7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{x}", "unknown variable 'x'; known: n, level, to, 日"),
        ("{leve}", "unknown variable 'leve'; did you mean 'level'?"),
        ("{}", "unknown variable ''"),
        ("{0}", "unknown variable '0'"),
        ("{ n }", "unknown variable ' n '"),
        ("{n.real}", "unknown variable 'n.real'"),
        ("{n.__class__}", "unknown variable 'n.__class__'"),
        ("{to[0]}", "unknown variable 'to[0]'"),
        ("{n!r}", "unknown variable 'n!r'"),
        ("{n:>400000000}", "{n:>400000000}: after the colon may stand <, >, ^ or 0, a width of at most 64"),
        (f"{{n:{MOST_WIDTH + 1}}}", "a width of at most 64"),
        (f"{{level:.{MOST_DECIMALS + 1}f}}", "decimals, at most 17"),
        ("{level:.400000000f}", "after the colon"),
        ("{level:.3}", "after the colon"),
        ("{level:.2e}", "after the colon"),
        ("{n:,}", "after the colon"),
        ("{n:x}", "after the colon"),
        ("{n:+}", "after the colon"),
        ("{n:*>3}", "after the colon"),
        ("{n:٣}", "after the colon"),
        ("{n:3\n}", "after the colon"),
        ("{n: }", "after the colon"),
        ("{n:<03}", "after the colon"),
        ("{to:.2f}", "texts have neither decimals nor leading zeros"),
        ("{to:05}", "texts have neither decimals nor leading zeros"),
        ("{n:{level}}", "a variable stands in braces, such as '{n}', and a brace is written twice"),
        ("{", "a brace is written twice"),
        ("}", "a brace is written twice"),
        ("{n}}", "a brace is written twice"),
        ("{{n}", "a brace is written twice"),
        ("{n" * 3, "a brace is written twice"),
        ("x" * (MOST_TEMPLATE + 1), "state_names must have at most 1,000 characters; got 1,001"),
        (5, "state_names must be a text with variables in braces, such as '{n}'; got int"),
    ],
)
def test_anything_else_is_refused(text, words):
    with pytest.raises(ModelError) as caught:
        NameTemplate.read(text, VALUES, "state_names")
    assert str(caught.value).startswith("state_names")
    assert words in str(caught.value)


def test_the_longest_template_and_the_widest_field_are_allowed():
    text = "{n:64}" + "." * (MOST_TEMPLATE - 6)
    assert [len(name) for name in Space({"n": 2}, "state", text).labels(np.arange(2))] == [64 + MOST_TEMPLATE - 6] * 2


def test_without_a_template_any_number_of_variables_may_have_any_names():
    names = [letter * 40 for letter in string.ascii_lowercase]
    assert Space(dict.fromkeys(names, 1), "state").labels(np.arange(1)) == [", ".join(f"{name}=0" for name in names)]


def test_the_file_is_named(tmp_path):
    text = (
        'minimise = "shelf"\nstate_names = "{shelf:>400000000}"\n'
        '[state]\nshelf = 3\n[action]\norder = 2\n[step]\nshelf = "min(shelf + order, 2)"\n[costs]\n'
    )
    (tmp_path / "wide.toml").write_text(text)
    with pytest.raises(ModelError, match=r"wide\.toml: state_names: \{shelf:>400000000\}: after the colon"):
        System.load(tmp_path / "wide.toml")
