"""Host side of the products of experts: what their spec declares, and PyTorch to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from launchwise.workloads.declared.declared_session import DeclaredSession
from launchwise.workloads.declared.declared_workload import DeclaredWorkload

if TYPE_CHECKING:
    # Imported where it is used: how a library is called decides nothing about a sweep's rows.
    from .pytorch import PyTorch


class ExpertSession(DeclaredSession):
    """One problem's rows, weights and routing."""

    def __init__(self, *given: Any) -> None:
        self._peers: dict[str, PyTorch] = {}
        super().__init__(*given)

    def peer(self, name: str) -> PyTorch:
        """See :meth:`launchwise.workloads.workload.Session.peer`: PyTorch on its own copies."""
        from .pytorch import PyTorch

        if name not in self._peers:
            self._peers[name] = PyTorch(name, self.content.arrays, self.buffers["out"])
        return self._peers[name]

    def close(self) -> None:
        for each in self._peers.values():
            each.close()
        super().close()


class ExpertProduct(DeclaredWorkload):
    """Rows times the weights of their expert."""

    peers = ("pytorch", "pytorch_compiled")
    session = ExpertSession
