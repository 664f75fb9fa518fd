"""A robot in the browser: live, or recorded into one file that opens without anything else."""

# pyright: reportMissingImports=false
# viser is an extra: it is not in the lock.
from __future__ import annotations

import contextlib
import importlib.metadata
import io
import socket
import time
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import jinja2
import markupsafe

from euda.errors import EudaError
from euda.media.browser_scene import BrowserScene, ghost_colour
from euda.media.twins import Twins

HOST = "127.0.0.1"
FASTEST = 25
"""Frames per second."""
_SPEEDS = (0.1, 4.0)
_VISER = "1"
"""The major version whose scenes and recordings these are."""


def _viser() -> Any:
    try:
        found = importlib.metadata.version("viser")
        if found.partition(".")[0] != _VISER:
            raise EudaError(f"a view in the browser needs viser {_VISER}, not {found}: pip install 'euda[view]'")
        import viser
    except (ImportError, importlib.metadata.PackageNotFoundError):
        raise EudaError("a view in the browser needs the package viser: pip install 'euda[view]'") from None
    return viser


def check_extra() -> None:
    """Refuse to begin where viser is missing or of another version."""
    _viser()


def serve(port: int) -> Any:
    """A viser server for this machine alone; a port in use is refused."""
    viser = _viser()
    if not 0 <= port < 65536:
        raise EudaError(f"a port is a whole number from 0 (any that is free) to 65535, not {port}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            reason = f"port {port} cannot be used ({error.strerror})"
            raise EudaError(f"{reason}: choose another with --port, or 0 for any that is free") from None
    with contextlib.redirect_stdout(io.StringIO()):  # it greets, whatever it is told
        server = viser.ViserServer(host=HOST, port=port, label="euda", verbose=False)
    if port and server.get_port() != port:  # somebody was faster
        stop(server)
        raise EudaError(f"port {port} is in use: choose another with --port, or 0")
    return server


def stop(server: Any) -> None:
    """End a server, without its farewell."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def open_browser(url: str) -> None:
    """Open a page; says what to do where there is no browser."""
    if not webbrowser.open(url):
        raise EudaError(
            "there is no browser here to open a view in: --no-browser waits for yours, --out FILE.html writes a page"
        )


class Live:
    """A scene that plays, with the controls of a person who watches."""

    def __init__(self, server: Any, twins: Twins, seed: int = 0) -> None:
        self.twins, self.scene, self._server = twins, BrowserScene(server, twins), server
        self.port = int(server.get_port())
        self._seed, self._wants = seed, list[Callable[[], None]]()
        self._controls()
        self.restart()

    def _controls(self) -> None:
        gui = self._server.gui
        self.play = gui.add_checkbox("play", True)
        self.speed = gui.add_slider("speed", *_SPEEDS, step=0.1, initial_value=1.0)
        self.again = gui.add_button("another start")
        self.again.on_click(lambda _: self._wants.append(self._another))
        self.push = gui.add_button("push")
        self.push.on_click(lambda _: self._wants.append(lambda: self.twins.push(self.degrees.value, self.force.value)))
        self.degrees = gui.add_slider("push towards (°)", 0, 345, step=15, initial_value=90)
        self.force = gui.add_slider("push by (m/s)", 0.2, 5.0, step=0.2, initial_value=1.0)
        if len(self.twins.all) > 1:
            self.apart = gui.add_slider("side by side (m)", 0.0, 3.0 * self.scene.size, 0.05, 0.0)
            self.boxes = [gui.add_checkbox(twin.world.name, True) for twin in self.twins.all[1:]]
        self.text = gui.add_markdown("")

    def restart(self) -> None:
        """Begin the episode of the current seed."""
        self.twins.begin(self._seed)
        self.scene.update()
        self._say()

    def _another(self) -> None:
        self._seed += 1
        self.restart()

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Play until told otherwise; an episode that has ended is followed by the next."""
        due = time.monotonic()
        shown = 0.0
        while not until():
            self._obey()
            if not self.play.value:
                time.sleep(0.02)
                due = time.monotonic()
                continue
            if not self.twins.step():
                self._another()
            due = max(due + self.twins.seconds / self.speed.value, time.monotonic() - 0.2)
            if time.monotonic() - shown > 1 / FASTEST:
                shown = time.monotonic()
                self.scene.update()
                self._say()
            time.sleep(max(0.0, due - time.monotonic()))

    def _obey(self) -> None:
        """What was asked for by clicks, in this thread, and how the scene is to be drawn."""
        while self._wants:
            self._wants.pop(0)()
        if len(self.twins.all) > 1:
            asked = self.apart.value, [True, *(box.value for box in self.boxes)]
            if asked != (self.scene.apart, self.scene.shown):
                self.scene.apart, self.scene.shown = asked
                self.scene.update()

    def _say(self) -> None:
        lines = [f"{twin.world.name}: {twin.total:.1f}" for twin in self.twins.all] if self.twins.has_reward else []
        far = f"apart by at most {100 * self.twins.apart():.2g} cm" if len(self.twins.all) > 1 else ""
        self.text.content = "\n\n".join(["return", *lines, far] if lines else [far])


def record(twins: Twins, seconds: float, title: str, seed: int = 0, apart: float = 0.0) -> str:
    """One HTML page with a timeline, that needs nothing else; `apart` in sizes of the robot."""
    if seconds <= 0:
        raise EudaError(f"a recording lasts longer than {seconds:g} seconds")
    server = serve(0)
    try:
        twins.begin(seed)
        scene = BrowserScene(server, twins, apart)
        recording = server.get_scene_serializer()
        stride = max(1, round(1 / twins.seconds / FASTEST))
        for step in range(round(seconds / twins.seconds)):
            is_going = twins.step()
            if step % stride == stride - 1:
                recording.insert_sleep(stride * twins.seconds)
                scene.update()
            if not is_going:
                break
        page = recording.as_html()
    finally:
        stop(server)
    return _with_caption(page, twins, title)


def _with_caption(page: str, twins: Twins, title: str) -> str:
    """The page with its title, and a line for the robot and each twin."""
    colours = ["#555", *("rgb({}, {}, {})".format(*ghost_colour(number)) for number in range(1, len(twins.all)))]
    returns = [f", return {twin.total:.1f}" if twins.has_reward else "" for twin in twins.all]
    names = [twin.world.name + total for twin, total in zip(twins.all, returns, strict=True)]
    return captioned(page, title, list(zip(colours, names, strict=True)))


def captioned(page: str, title: str, lines: Sequence[tuple[str, str]]) -> str:
    """A page with this title and a box over it that says what is seen: lines of a colour and a text each."""
    templates = jinja2.Environment(loader=jinja2.PackageLoader("euda.media"), autoescape=True, trim_blocks=True)
    caption = templates.get_template("caption.html").render(title=title, lines=lines)
    page = page.replace("</body>", f"{caption}</body>", 1)
    before, after = page.index("<title>"), page.index("</title>")
    return f"{page[:before]}<title>{markupsafe.escape(title)}{page[after:]}"
