"""Prior knowledge in a spec: support, trust and worth, the same as on the command line and in Python."""

import dataclasses
import textwrap

import numpy as np
import pytest

import psconrl
from psconrl.errors import ConfigError, PsconrlError
from psconrl.experiment.job import execute
from psconrl.experiment.prior_knowledge import Knowledge
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec

SPEC = """
seed = 3
replicates = 1
[agents.nothing]
agent = "psconrl"
[agents.support]
agent = "psconrl"
support = true
[agents.trust]
agent = "psconrl"
trust = "rough.npz"
[agents.worth]
agent = "psconrl"
trust = "rough.npz"
worth = 20
[experiments.network]
options = { side = 3 }
horizon = 150
"""


@pytest.fixture
def folder(tmp_path):
    psconrl.save(psconrl.load("network", side=3, arrival=1.3), tmp_path / "rough.npz")
    return tmp_path


def jobs_by_label(text, folder):
    return {job.label: job for job in parse_spec(text, folder=folder).jobs()}


def test_the_agent_is_the_one_of_python(folder):
    jobs = jobs_by_label(SPEC, folder)
    environment = psconrl.load("network", side=3)
    rough = psconrl.load(folder / "rough.npz")
    agents = {label: job.make_agent(environment) for label, job in jobs.items()}
    assert agents["nothing"].belief.support is None
    support = agents["support"].belief.support
    np.testing.assert_array_equal(support.toarray(), (environment.transition.toarray() > 0).astype(float))
    learned = psconrl.PSConRL.trusting(rough)
    np.testing.assert_array_equal(agents["trust"].belief.support.toarray(), learned.belief.support.toarray())
    assert agents["trust"].belief.grid == learned.belief.grid
    fixed = psconrl.PSConRL.trusting(rough, 20)
    np.testing.assert_array_equal(agents["worth"].belief.prior.toarray(), fixed.belief.prior.toarray())
    assert agents["worth"].recipe == "psconrl"


def test_all_play_otherwise_and_it_is_part_of_the_hash(folder):
    jobs = jobs_by_label(SPEC, folder)
    results = {label: execute(job) for label, job in jobs.items()}
    assert not any(result.error for result in results.values())
    assert len({tuple(result.cumulative[-1]) for result in results.values()}) == 4
    same_label = {dataclasses.replace(job, label="x").hash for job in jobs.values()}
    assert len(same_label) == 4
    more = jobs_by_label(SPEC.replace("worth = 20", "worth = 21"), folder)
    assert {label for label in jobs if more[label].hash != jobs[label].hash} == {"worth"}


def test_the_hash_covers_what_is_in_the_file_not_where_it_is(folder, tmp_path_factory):
    jobs = jobs_by_label(SPEC, folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "rough.npz").write_bytes((folder / "rough.npz").read_bytes())
    moved = jobs_by_label(SPEC, elsewhere)
    assert {label: job.hash for label, job in moved.items()} == {label: job.hash for label, job in jobs.items()}
    psconrl.save(psconrl.load("network", side=3, arrival=1.4), elsewhere / "rough.npz")
    changed = jobs_by_label(SPEC, elsewhere)
    assert {label for label in jobs if changed[label].hash != jobs[label].hash} == {"trust", "worth"}
    assert "rough.npz has changed, or is missing" in execute(moved["trust"]).error
    assert execute(moved["support"]).error == ""


def test_a_model_that_code_makes_is_trusted_and_its_source_hashed(folder, monkeypatch):
    own = f"rough_{folder.name}".replace("-", "_")
    source = folder / f"{own}.py"
    source.write_text(
        textwrap.dedent("""
        import psconrl
        def model():
            return psconrl.load("network", side=3, arrival=1.3)
    """)
    )
    monkeypatch.chdir(folder)
    text = SPEC.replace("rough.npz", f"{own}:model")
    jobs = jobs_by_label(text, folder)
    assert [bool(job.code) for job in jobs.values()] == [False, False, True, True]
    with_file = execute(jobs_by_label(SPEC, folder)["worth"])
    assert execute(jobs["worth"]).cumulative.tolist() == with_file.cumulative.tolist()
    source.write_text(source.read_text() + "# another\n")
    assert jobs_by_label(text, folder)["worth"].hash != jobs["worth"].hash


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("worth = 20", 'worth = "much"'), r"[agents.worth] worth must be a number; got 'much'"),
        (("worth = 20", "worth = 0"), "weight must be above 0"),
        (("support = true", "support = true\nworth = 3"), "[agents.support] worth says how much the model of trust"),
        (("support = true", 'support = true\ntrust = "queue"'), "[agents.support] give support or trust, not both"),
        (("support = true", "support = 1"), "support must be true or false; got 1"),
        (("rough.npz", "queue"), "trust: queue has (S, A, m) = (10, 6, 2), the environment (9, 4, 1)"),
        (("rough.npz", "rogh"), "[agents.trust] trust: unknown environment 'rogh'"),
        (("rough.npz", "missing.npz"), "missing.npz"),
        (('"psconrl"\nsupport', '"c-ucrl"\nsupport'), "support: agent 'c-ucrl' has no prior belief to set"),
        (("support = true", "support = true\noptions = { prior = 3 }"), "option prior and support contradict"),
        (('[experiments.network]\noptions = { side = 3 }', '[experiments.a]\nenv = "gym:Blackjack-v1"'),
         "support needs a model, and gym:Blackjack-v1 has none"),
    ],
)  # fmt: skip
def test_knowledge_that_cannot_be_given_ends_in_one_line_before_anything_runs(folder, change, complaint):
    with pytest.raises(PsconrlError) as error:
        run_sweep(parse_spec(SPEC.replace(*change), folder=folder).jobs(), folder / "never.db", workers=1)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_words_on_the_command_line_have_dashes():
    with pytest.raises(ConfigError, match="--worth says how much the model of --trust"):
        Knowledge(worth=3.0, dashes="--")
    assert Knowledge(support=True, dashes="--").word == "--support"
    assert Knowledge(trust="queue").word == "trust"
    assert not Knowledge()


SPANS = """
replicates = 1

[agents.horizon]
agent = "fha"
spans = true

[agents.account]
agent = "sa-cvi-ucb"
spans = true

[experiments.chain]
horizon = 200
"""


def test_theory_that_needs_constants_gets_those_of_the_true_model():
    """Those of the chain are verified independently in test_environment_models.py."""
    horizon, account = (job.make_agent(job.environment()) for job in parse_spec(SPANS).jobs())
    assert horizon.span == pytest.approx([0.84708], abs=1e-5)
    assert (account.span_objective, account.span_limited) == pytest.approx((1.0, 0.84708), abs=1e-5)
    assert account.gap == pytest.approx(0.1378948896, abs=1e-9)


def test_with_several_limits_there_is_a_span_for_each():
    spec = SPANS.replace("[experiments.chain]", "[experiments.queue]").replace("sa-cvi-ucb", "fha")
    job = parse_spec(spec).jobs()[0]
    model = job.environment()
    spans = np.ptp(psconrl.evaluate(model, psconrl.plan(model).policy).biases, axis=1)
    assert job.make_agent(model).span == pytest.approx(spans[1:])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('"fha"', '"psconrl"'), "spans: agent 'psconrl' asks for none of the optimal policy's span, span_obj"),
        (('"fha"\nspans = true', '"fha"\nspans = true\noptions = { span = 1 }'), "option span and spans contradict"),
        (("spans = true", "spans = 1"), "spans must be true or false; got 1"),
        (("horizon = 200", "horizon = 200\nthresholds = { missed = 0.001 }"), "spans: the constraints of the model"),
    ],
)  # fmt: skip
def test_constants_that_are_not_needed_end_in_one_line(tmp_path, change, complaint):
    with pytest.raises(PsconrlError) as error:
        run_sweep(parse_spec(SPANS.replace(*change)).jobs(), tmp_path / "never.db", workers=1)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)
