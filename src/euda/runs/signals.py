"""Ctrl-C, SIGTERM and a closed terminal as requests: whoever works looks between two steps, saves and ends."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from euda import operating_system


class Stop:
    """A request to end; true once it was made, and `count` says how often."""

    def __init__(self) -> None:
        self.count, self.signal = 0, None

    def __bool__(self) -> bool:
        return self.count > 0

    def request(self, number: int | None = None) -> None:
        """Ask to stop, because of a signal or for another reason; the first one is remembered."""
        self.count += 1
        self.signal = number if self.signal is None else self.signal

    @contextlib.contextmanager
    def on_signals(self, *, second_interrupts: bool) -> Iterator[None]:
        """Take signals as requests; a second Ctrl-C interrupts at once if so wished, and else is one more request."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(number: int, frame: FrameType | None) -> None:
            self.request(number)
            if second_interrupts:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        # what the user has had ignored (nohup does it to SIGHUP) stays so
        asked = [number for number in operating_system.stop_signals() if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, on_signal) for number in asked}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
