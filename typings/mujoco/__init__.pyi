# mujoco's names come from compiled modules without stubs: every one of them is Any to the type checker.
from typing import Any

def __getattr__(name: str) -> Any: ...
