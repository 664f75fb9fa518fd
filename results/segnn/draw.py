"""Draw results/segnn/curves.png from the metrics beside this file."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent


def main() -> None:
    """One line for each parity, with the range of the ten episodes."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for parity in ("paper", "axial"):
        lines = (HERE / parity / "metrics.jsonl").read_text("utf-8").splitlines()
        events = [event for event in map(json.loads, lines) if event["event"] == "eval"]
        steps = [event["step"] for event in events]
        axes.plot(steps, [event["return_mean"] for event in events], label=f"segnn, parity={parity}")
        low, high = ([pick(event["returns"]) for event in events] for pick in (min, max))
        axes.fill_between(steps, low, high, alpha=0.15)
    axes.set(xlabel="environment steps", ylabel="return", title="reacher_hard, one seed; mean and range of 10 episodes")
    axes.legend()
    figure.savefig(HERE / "curves.png", dpi=120)


if __name__ == "__main__":
    main()
