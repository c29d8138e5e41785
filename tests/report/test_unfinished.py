"""Results of a sweep that is not complete: tables, figures and exports say so."""

import shutil

import pytest

from psconrl.cli import main
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.aggregate_table import aggregate_table
from psconrl.report.aggregates import loss_table
from psconrl.report.curves import read_experiments
from psconrl.report.grid_curves import grid_over
from psconrl.report.metrics import measures
from psconrl.report.panel_contents import rows_of
from psconrl.report.panels import panel_figure
from psconrl.report.print_table import print_table
from psconrl.report.profile_panel import profile_panel
from psconrl.report.selection import select
from psconrl.report.unfinished import UnfinishedAgent, unfinished_in_words
from sweeps import AtOnce, changed_unnoticed

SPEC = """
replicates = 3
[agents.patient]
agent = "psconrl"
grid = { prior = [0.02, 0.1] }
[experiments.a]
env = "counterexample"
agents = ["uniform", "ucrl2", "patient"]
horizon = 40
checkpoints = 2
[experiments.b]
env = "counterexample"
agents = ["uniform", "ucrl2"]
horizon = 40
checkpoints = 2
"""


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    path = tmp_path_factory.mktemp("unfinished") / "r.db"
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    return path


@pytest.fixture
def killed(complete, tmp_path):
    """The file of a sweep that ended before all runs were done."""
    path = tmp_path / "r.db"
    shutil.copy(complete, path)
    lost = "label = 'uniform' AND replicate = 2 OR label = 'ucrl2' OR label = 'patient prior=0.1' AND replicate > 0"
    changed_unnoticed(path, f"DELETE FROM runs WHERE experiment = 'b' OR {lost}")
    return path


def read(path):
    with Store(path) as store:
        return read_experiments(store)


IN_WORDS = "2 of 3 runs of uniform; 0 of 3 runs of UCRL2; 1 of 3 runs of patient prior=0.1"


def test_the_planned_runs_that_are_not_done_are_counted(killed, complete):
    (a,) = read(killed)
    assert a.unfinished == (
        UnfinishedAgent("uniform", "uniform", 2, 3),
        UnfinishedAgent("ucrl2", "UCRL2", 0, 3),
        UnfinishedAgent("patient prior=0.1", "patient prior=0.1", 1, 3),
    )
    assert unfinished_in_words(a.unfinished) == IN_WORDS
    assert [e.unfinished for e in read(complete)] == [(), ()]
    changed_unnoticed(killed, "DELETE FROM meta WHERE key LIKE 'planned %'")
    assert read(killed)[0].unfinished == ()  # unknown


def test_tables_and_figures_have_a_note(killed):
    shown = select(read(killed))
    table = print_table(shown, measures(shown, ["cost"]), "markdown")
    assert table.endswith(f" Unfinished: a: {IN_WORDS}.\n")
    heading = " ".join(panel_figure(shown, rows_of(measures(shown, ["cost"]))).get_suptitle().split())
    assert heading.startswith("a 2 runs; 3 of patient prior=0.02; 1 of patient prior=0.1")
    assert heading.endswith(f" unfinished: {IN_WORDS}")
    losses = loss_table(shown, shown)
    assert aggregate_table(losses, "markdown").endswith(f" Unfinished: a: {IN_WORDS}.\n")
    together, _ = profile_panel(losses, shown)
    assert unfinished_in_words(together.unfinished) == IN_WORDS
    (over_prior,) = grid_over(shown, "prior").experiments
    assert unfinished_in_words(over_prior.unfinished) == IN_WORDS


def test_only_the_chosen_agents_count_under_their_new_names(killed):
    (shown,) = select(read(killed), agents=["uniform,patient prior=0.02"], renames=["uniform=Random"])
    assert unfinished_in_words(shown.unfinished) == "2 of 3 runs of Random"
    (shown,) = select(read(killed), agents=["patient prior=0.02"])
    assert "Unfinished" not in print_table([shown], measures([shown], ["cost"]), "markdown")


@pytest.mark.parametrize(
    ("arguments", "names"), [(["table"], IN_WORDS), (["export"], IN_WORDS.replace("UCRL2", "ucrl2"))]
)
def test_the_commands_say_it_on_standard_error(killed, complete, capsys, arguments, names):
    assert said(arguments, killed, capsys) == ["Unfinished: a: " + names, "Unfinished: b: 0 of 6 runs"]
    assert said(arguments, complete, capsys) == []


def test_experiments_that_are_not_asked_for_do_not_count(killed, capsys):
    assert said(["table", "--experiments", "a"], killed, capsys) == [f"Unfinished: a: {IN_WORDS}"]


def said(arguments, path, capsys):
    """The lines on standard error of a command that succeeds, sorted."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, str(path)])
    assert not ended.value.code
    return sorted(capsys.readouterr().err.splitlines())
