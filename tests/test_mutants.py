"""The list of faults that ``make mutants`` tries fits the source, so that none is left out in silence."""

import pytest

from mutants import PACKAGE, ROOT, read_mutants


@pytest.mark.parametrize("mutant", read_mutants(), ids=str)
def test_a_fault_can_be_put_where_it_says(mutant):
    source = (ROOT / "src" / PACKAGE / mutant.file).read_text()
    assert mutant.applied(source) != source
    assert mutant.tests
    assert all((ROOT / test.split("::")[0]).exists() for test in mutant.tests)
