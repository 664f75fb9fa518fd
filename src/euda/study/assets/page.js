"use strict";
// The controls above the plots. Plotly draws; every number it can show was computed in Python and is in trace.meta.
(function () {
  const plots = Array.from(document.querySelectorAll("#curves .js-plotly-plot"));
  const chips = Array.from(document.querySelectorAll(".chip"));
  const selects = Array.from(document.querySelectorAll(".controls select"));
  const key = "euda:" + document.title;

  // Plots are drawn while the page is still being laid out, and phones turn round.
  const watcher = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const plot = entry.target.querySelector(".js-plotly-plot");
      if (plot) Plotly.Plots.resize(plot);
    }
  });
  document.querySelectorAll(".plot").forEach((box) => watcher.observe(box));

  function apply() {
    const hidden = new Set(chips.filter((c) => c.getAttribute("aria-pressed") === "false").map((c) => c.dataset.curve));
    const choice = Object.fromEntries(selects.map((s) => [s.name, s.value]));
    for (const plot of plots) {
      const metas = plot.data.map((trace) => trace.meta);
      const axis = choice.axis || "steps";
      Plotly.update(
        plot,
        {
          visible: metas.map((m) => !hidden.has(m.curve)),
          x: metas.map((m) => m.x[axis]),
          y: metas.map((m) => m.y[choice.smooth || "1"]),
        },
        {
          "xaxis.type": choice.scale === "log x" ? "log" : "linear",
          "yaxis.type": choice.scale === "log y" ? "log" : "linear",
          "xaxis.title.text": plot.layout.meta.names[axis],
          "xaxis.autorange": true,
          ...(choice.scale === "log y" ? { "yaxis.autorange": true } : { "yaxis.range": [0, plot.layout.meta.top] }),
        }
      );
    }
    try {
      sessionStorage.setItem(key, JSON.stringify({ hidden: Array.from(hidden), choice: choice }));
    } catch (error) {
      // a page opened from a file may have no storage; nothing depends on it
    }
  }

  function restore() {
    let state = null;
    try {
      state = JSON.parse(sessionStorage.getItem(key));
    } catch (error) {
      return false;
    }
    if (!state) return false;
    for (const chip of chips) chip.setAttribute("aria-pressed", String(!state.hidden.includes(chip.dataset.curve)));
    for (const select of selects) if (state.choice[select.name]) select.value = state.choice[select.name];
    return true;
  }

  for (const chip of chips) {
    chip.addEventListener("click", function () {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") === "false"));
      apply();
    });
    chip.addEventListener("dblclick", function () {
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
      apply();
    });
  }
  for (const select of selects) select.addEventListener("change", apply);
  if (restore()) apply();

  // Served by `euda report --serve`: come back when there is something new, where the reader was.
  const stamp = document.documentElement.dataset.stamp;
  if (stamp && location.protocol.startsWith("http")) {
    setInterval(async function () {
      try {
        const answer = await fetch("stamp", { cache: "no-store" });
        if (answer.ok && (await answer.text()) !== stamp) location.reload();
      } catch (error) {
        // the server has gone: the page stays as it is
      }
    }, 5000);
  }
})();
