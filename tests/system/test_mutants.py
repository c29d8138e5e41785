"""The list of faults of ``make mutants`` fits the source, so that none is silently skipped."""

from mutants import PACKAGE, ROOT, read_mutants


def trouble_with(mutant):
    """Why a fault cannot be applied or has no test; empty if all is well."""
    try:
        source = (ROOT / "src" / PACKAGE / mutant.file).read_text()
        changed = mutant.applied(source)
    except (OSError, ValueError) as error:
        return str(error)
    if changed == source:
        return f"{mutant}: changes nothing"
    if not mutant.tests:
        return f"{mutant}: no test is named"
    missing = [test for test in mutant.tests if not is_there(test)]
    return f"{mutant}: there is no {missing[0]}" if missing else ""


def is_there(test):
    """True if a file, or a test in a file, of this name exists."""
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.exists() and f"\ndef {name.partition('[')[0]}(" in path.read_text() if name else path.exists()


def test_every_fault_can_be_put_where_it_says_and_names_tests_that_there_are():
    assert list(filter(None, map(trouble_with, read_mutants()))) == []
