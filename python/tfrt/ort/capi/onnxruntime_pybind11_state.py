"""Options, values and exceptions, where code looks for them."""

from tfrt.ort import *  # noqa: F401,F403
from tfrt.ort._session import ModelMetadata, NodeArg  # noqa: F401
from tfrt.ort._status import *  # noqa: F401,F403
