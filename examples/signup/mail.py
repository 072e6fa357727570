"""A mail catcher: a real SMTP server on this machine that delivers nothing and keeps each mail as a file."""

import re
import socket
from collections.abc import Callable
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class MailCatcher:
    """Keeps mail in `folder`, a file each, and tells of each answer that it gives. A mail has one recipient here.

    An address that begins with `busy-` is put off at its first try (451), one that begins with `gone-` is always refused (550).
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._met: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        self._server = Controller(self, hostname="127.0.0.1", port=self.port)

    def start(self) -> None:
        """Serve, in a thread."""
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def caught(self) -> int:
        """How many mails are in the folder, those of earlier runs included."""
        return len(list(self._folder.glob("*.eml")))

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  aiosmtpd's name
        [address] = envelope.rcpt_tos
        name = re.sub(r"[^\w.+@-]", "_", address)  # an address is a stranger's text, and must not name another folder
        if address.startswith("gone-"):
            return self._answer(address, "550 no such mailbox")
        if address.startswith("busy-") and address not in self._met and not list(self._folder.glob(f"*-{name}.eml")):
            self._met.add(address)
            return self._answer(address, "451 busy, try again later")
        path = self._folder / f"{self.caught() + 1:04}-{name}.eml"
        whole = path.with_suffix(".part")
        whole.write_bytes(envelope.original_content or b"")
        whole.rename(path)  # so that a mail is there whole or not at all, whenever the process is killed
        return self._answer(address, f"250 kept as {path}")

    def _answer(self, address: str, answer: str) -> str:
        self._tell(f"{address}: {answer}")
        return answer


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
