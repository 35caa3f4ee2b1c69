"""Options of sessions and of calls."""

from __future__ import annotations

import enum
import warnings

from .._tfrt import CancellationToken
from ._status import Fail

_told: set = set()


def warn_once(message: str) -> None:
    """Warns of something that is not done, the first time."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=3)


class GraphOptimizationLevel(enum.IntEnum):
    """Levels of optimization, of which two differ: none, and all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Orders of execution, which mean nothing here: kernels run as soon as their operands are there."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Orders of nodes, which mean nothing here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class SessionOptions:
    """Options of a session.

    ``intra_op_num_threads`` gives sessions of one number of threads a runtime of their own; dimensions that are overridden by
    name are fixed; a level of ``ORT_DISABLE_ALL`` opens the model without optimizations. The rest means nothing here.
    """

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.optimized_model_filepath = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict = {}
        self._dims: dict = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise Fail(f"the session options have no entry '{key}'")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._dims[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        warn_once("tfrt.ort fixes no dimensions by denotation")

    def add_initializer(self, name: str, value) -> None:
        raise Fail(f"initializer '{name}': tfrt.ort takes none beside the model")

    def register_custom_ops_library(self, path) -> None:
        raise Fail(f"'{path}' can't be loaded: tfrt.ort runs no kernels that are built for onnxruntime")

    def add_provider(self, name: str, options=None) -> None:
        if name != "CPUExecutionProvider":
            warn_once(f"tfrt.ort has no {name}: the model runs on the processor")


class RunOptions:
    """Options of calls. Setting ``terminate``, from another thread say, cancels those that run with them."""

    def __init__(self) -> None:
        self._token = CancellationToken()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._entries: dict = {}

    @property
    def terminate(self) -> bool:
        return self._token.is_cancelled

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if value:
            self._token.cancel()
        elif self._token.is_cancelled:
            self._token = CancellationToken()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]
