"""PRISM and JANI sources, built by Storm if stormpy is installed: it writes a file, which is then read.

Nothing else of stormpy's objects is used, as they differ between its versions.
"""

import importlib
import tempfile
from pathlib import Path
from typing import Any

from psconrl.base.extras import need_stormpy
from psconrl.errors import ModelError, PsconrlError
from psconrl.model.exchange.drn_reader import read_drn
from psconrl.model.exchange.explicit_model import ExplicitModel
from psconrl.model.exchange.umb import read_umb

ENDINGS = (".prism", ".nm", ".pm", ".sm", ".jani")


def read_symbolic(path: Path, constants: Any = "") -> ExplicitModel:
    """Read a model from its source. ``constants``: values for undefined constants, as ``"N=3,p=0.5"``."""
    need_stormpy(f"a {path.suffix} file")
    given = constants if isinstance(constants, str) else ",".join(map(str, constants))  # --set splits at commas
    stormpy = importlib.import_module("stormpy")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _through_a_file(stormpy, _built(stormpy, path, given), Path(folder))
    except PsconrlError:
        raise
    except Exception as error:  # Storm raises C++ errors of several types
        hint = "; give values to open constants, as constants='N=3'" if "undefined constants" in str(error) else ""
        raise ModelError(f"Storm cannot build it: {' '.join(str(error).split())[:300]}{hint}") from None


def _built(stormpy: Any, path: Path, constants: str) -> Any:
    """Build a model in Storm, with all its rewards, labels and action names."""
    if path.suffix == ".jani":
        source: Any = stormpy.parse_jani_model(str(path))[0]
    else:
        source = stormpy.parse_prism_program(str(path))
    if hasattr(stormpy, "instantiate_constants"):  # 2.0 and later
        if constants:
            source = stormpy.instantiate_constants(source, constants)[0]
        return stormpy.build_model(source, options=stormpy.BuilderOptions(build_full=True))
    if constants:
        description = stormpy.SymbolicModelDescription(source)
        given = description.parse_constant_definitions(constants)
        instantiated = description.instantiate_constants(given)
        source = instantiated.as_jani_model() if path.suffix == ".jani" else instantiated.as_prism_program()
    options = stormpy.BuilderOptions(True, True)  # all rewards and labels
    options.set_build_choice_labels()
    options.set_build_state_valuations()
    return stormpy.build_sparse_model_with_options(source, options)


def _through_a_file(stormpy: Any, model: Any, folder: Path) -> ExplicitModel:
    """Convert a model through a file that Storm writes: UMB, which keeps all digits, or text before 2.0."""
    if hasattr(stormpy, "export_to_drn"):
        stormpy.export_to_drn(model, str(folder / "model.drn"))
        return read_drn((folder / "model.drn").read_bytes())
    importlib.import_module("stormpy.io").export_to_umb(model, str(folder / "model.umb"))
    return read_umb((folder / "model.umb").read_bytes())
