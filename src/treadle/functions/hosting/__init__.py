"""Functions that the service runs itself, from a folder, in processes of their own (F1, F2)."""

from treadle.functions.hosting.declaration import FolderFunction
from treadle.functions.hosting.hosts import Hosts
from treadle.functions.hosting.keeper import HostState, Retired

__all__ = ["FolderFunction", "HostState", "Hosts", "Retired"]
