"""Plans speculative decoding: how many tokens to draft, with which draft model, on which hardware, at which batch size,
whether it is worth it at all, and how sure one can be.

>>> answer = plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05))
>>> answer.gamma, round(answer.speedup, 2)
(8, 3.09)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec import theory
from specdec._acceptance import Acceptance
from specdec._answers import Analysis, Answer, Capacity, Checkup, Comparison, Difference, Plan, Record, Simulation
from specdec._answers import Sweep, Synthetic
from specdec._core import __version__
from specdec._cost import Cost
from specdec._errors import FileError, QuestionError
from specdec._methods import compare, simulate
from specdec._questions import capacity, difference, doctor, plan, plan_runs, synthetic
from specdec._ray import RayExecutor
from specdec._record import record
from specdec._recording import Recording, analyze
from specdec._shipped import shipped_models
from specdec._sweep import sweep
from specdec._tune import Tuning, tune

if TYPE_CHECKING:
    from specdec import adapters
else:

    def __getattr__(name: str) -> object:
        # Adapters are loaded when they are needed, which few programs do.
        if name != "adapters":
            raise AttributeError(f"module 'specdec' has no attribute {name!r}")
        import importlib

        return importlib.import_module("specdec.adapters")


__all__ = [
    "Acceptance",
    "Analysis",
    "Answer",
    "Capacity",
    "Checkup",
    "Comparison",
    "Cost",
    "Difference",
    "FileError",
    "Plan",
    "QuestionError",
    "RayExecutor",
    "Record",
    "Recording",
    "Simulation",
    "Sweep",
    "Synthetic",
    "Tuning",
    "__version__",
    "adapters",
    "analyze",
    "capacity",
    "compare",
    "difference",
    "doctor",
    "plan",
    "plan_runs",
    "record",
    "shipped_models",
    "simulate",
    "sweep",
    "synthetic",
    "theory",
    "tune",
]
