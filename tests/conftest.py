"""Which tests run when, and how Hypothesis searches.

``make test`` skips tests marked ``full``. Of a test marked ``part(k)`` it runs every k-th case, and of a test by
Hypothesis a part of the examples. ``--full`` (``make test-all``) runs them all. A test named on the command line
(``file.py::test_name``) always runs. A test that is one long loop takes its length from the fixture ``full``.
"""

import gc
import os
import shutil
import signal
import warnings
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

# No deadlines: the machine may be busy. Where a test sets the number of its examples (``models.examples``), the numbers
# here are percentages of it.
settings.register_profile(
    "psconrl",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# `make test`.
settings.register_profile("part", settings.get_profile("psconrl"), max_examples=30)
# `make test-slow`: new examples at every run, and twenty times as many.
settings.register_profile("explore", settings.get_profile("psconrl"), derandomize=False, max_examples=2000)
settings.load_profile("psconrl")

# A script's background job ignores Ctrl-C, and its child processes inherit that. The tests need the signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Let the processes that tests start cache their bytecode; otherwise they compile every module they import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also the tests and cases that `make test` leaves out")


def pytest_configure(config):
    if not everything(config) and not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("part")


def pytest_collection_modifyitems(config, items):
    if everything(config) or any("::" in argument for argument in config.args):
        return
    ranks = defaultdict(dict)
    left_out = {item for item in items if item.get_closest_marker("full") or is_beside(item, ranks)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def everything(config):
    return config.getoption("--full")


def is_beside(item, ranks):
    """True if the case is not a k-th one. Its rank is the sum of its parameters' ranks, so every value has its turn.

    ``ranks``: ranks of values, by test and parameters, in order of appearance.
    """
    part = item.get_closest_marker("part")
    if part is None:
        return False
    values, place = dict(item.callspec.params), 0
    together = [names_of(mark.args[0]) for mark in item.iter_markers("parametrize")]
    of_fixtures = [[name] for name in values if not any(name in names for names in together)]
    for names in (*together, *of_fixtures):
        seen = ranks[item.function, *names]
        place += seen.setdefault(tuple(id(values[name]) for name in names), len(seen))
    return place % part.args[0] != 0


def names_of(parameters):
    """Return the names of parameters given together: "a, b" or ("a", "b")."""
    return parameters.replace(",", " ").split() if isinstance(parameters, str) else list(parameters)


@pytest.fixture
def full(request):
    """Whether all cases run."""
    return everything(request.config)


FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--window-size=1200,1600",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install 'psconrl[dev]'")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver_path = shutil.which("chromedriver")
    if not binary or not driver_path:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        driver.set_page_load_timeout(30)
        driver.set_script_timeout(10)
        yield driver
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the driver leaves its sockets to the garbage collector
            driver.quit()
            del driver
            gc.collect()


@pytest.fixture(scope="module")
def cluster():
    """Two processes under Dask on this machine."""
    distributed = pytest.importorskip("distributed", reason="needs the extra psconrl[distributed]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
    ) as made:
        yield made


@pytest.fixture
def no_processes(monkeypatch):
    """Run sweeps in this process, for tests that are not about processes: starting one takes seconds."""
    from sweeps import AtOnce

    monkeypatch.setattr("psconrl.experiment.executors._processes", lambda workers: AtOnce())


@pytest.fixture
def no_maps(monkeypatch):
    """Make pages without figures of policies, for tests that are not about these: each takes half a second."""
    monkeypatch.setattr("psconrl.report.page_contents._maps", lambda experiment: [])
