"""The command line: a function per command, imported when it is asked for; `parsing` reads the words.

Every error a user can cause ends as one sentence on standard error and exit code 2.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence

from euda import lookup
from euda.errors import EudaError, unknown

COMMANDS: dict[str, str] = {
    "tasks": "euda.terminal.body_commands:tasks",
    "layout": "euda.terminal.body_commands:layout",
    "certify": "euda.terminal.body_commands:certify",
    "symmetry": "euda.terminal.symmetry_commands:symmetry",
    "picture": "euda.terminal.body_commands:picture",
    "demo": "euda.terminal.demo_command:demo",
    "train": "euda.terminal.training_commands:train",
    "evaluate": "euda.terminal.run_commands:evaluate",
    "video": "euda.terminal.run_commands:video",
    "view": "euda.terminal.view_commands:view",
    "export": "euda.terminal.export_commands:export",
    "runs": "euda.terminal.run_commands:runs",
    "study show": "euda.terminal.study_commands:show",
    "study run": "euda.terminal.study_commands:run",
    "study status": "euda.terminal.study_commands:status",
    "study export": "euda.terminal.study_commands:export",
    "report": "euda.terminal.study_commands:report",
    "example": "euda.terminal.example:example",
}
"""By the words that a user types, `module:function`. A new command is a new row."""
_IMPORT = "--import"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        run = parse(list(sys.argv[1:] if arguments is None else arguments))
        code = 0 if run is None else run()
        sys.stdout.flush()  # now, where a reader that is gone is no error, and not at exit
        return code
    except EudaError as error:
        print(f"euda: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: no second error at exit
        return 0
    except KeyboardInterrupt:
        print("euda: interrupted", file=sys.stderr)
        return 130


def parse(words: list[str]) -> Callable[[], int] | None:
    """What the words ask for, to be run; None if it was printed already."""
    if words == ["--version"]:
        import importlib.metadata

        print(f"euda {importlib.metadata.version('euda')}")
        return None
    words, modules = _without_imports(words)
    name = next((name for name in COMMANDS if words[: name.count(" ") + 1] == name.split(" ")), None)
    if name is None:
        return _overview(words)
    from euda.runs import plugins
    from euda.terminal import parsing

    plugins.load(modules)
    return parsing.parse(f"euda {name}", lookup.loaded(COMMANDS[name]), words[name.count(" ") + 1 :])


def _without_imports(words: list[str]) -> tuple[list[str], list[str]]:
    """The words without every `--import MODULE`, and these modules: their rows must be there before flags are read."""
    rest, modules, coming = [], [], iter(words)
    for word in coming:
        if word == _IMPORT:
            module = next(coming, "")
            if not module or module.startswith("-"):
                raise EudaError(f"{_IMPORT} has no value: name a module of yours")
            modules.append(module)
        elif word.startswith(f"{_IMPORT}="):
            modules.append(word.partition("=")[2])
        else:
            rest.append(word)
    return rest, modules


def _overview(words: list[str]) -> None:
    """Print what there is, if that was asked for; refuse everything else."""
    group = words[0] if words and any(name.startswith(f"{words[0]} ") for name in COMMANDS) else ""
    names = [name for name in COMMANDS if name.startswith(group)]
    wanted = words[1:] if group else words
    if not wanted:
        raise EudaError(f"name a command: {', '.join(names)} (euda --help says what each does)")
    if wanted[0] not in ("--help", "-h", "--help-all"):
        typed = " ".join([*([group] if group else []), *wanted[:1]])
        raise unknown("command", typed, names)
    print(f"usage: euda {group or 'COMMAND'} ...   (euda COMMAND --help says more)\n")
    for name in names:
        print(f"  {name:13} {inspect.cleandoc(lookup.loaded(COMMANDS[name]).__doc__ or '').splitlines()[0]}")
    print("\n  --import MODULE, with any command: import your module first, which adds rows (docs/robot.md)")


if __name__ == "__main__":
    sys.exit(main())
