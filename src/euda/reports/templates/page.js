"use strict";
// Draws the plots and obeys the controls above them. Plotly draws; every number it can show was computed in Python and
// is in the page as JSON. The page's policy allows this script and plotly.js by their hashes, and no other.
(async function () {
  // plotly.js is packed into the page, unless the page shares a file of it with others.
  const packed = document.getElementById("plotly");
  if (packed) {
    const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  }

  const chips = Array.from(document.querySelectorAll(".chip"));
  const selects = Array.from(document.querySelectorAll(".controls select"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const key = "euda:" + document.title;

  function ink() {
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = { gridcolor: colour("--grid"), linecolor: colour("--axis"), tickcolor: colour("--axis") };
    return {
      "font.color": colour("--soft"),
      "modebar.color": colour("--axis"),
      "modebar.activecolor": colour("--accent"),
      "hoverlabel.bgcolor": colour("--paper"),
      "hoverlabel.bordercolor": colour("--axis"),
      "hoverlabel.font.color": colour("--ink"),
      ...Object.fromEntries(["xaxis", "yaxis"].flatMap((a) => Object.entries(axis).map(([k, v]) => [a + "." + k, v]))),
    };
  }

  const boxes = Array.from(document.querySelectorAll(".plot")).filter((box) => box.querySelector("script"));
  for (const box of boxes) {
    const figure = JSON.parse(box.querySelector("script").textContent);
    box.replaceChildren();
    await Plotly.newPlot(box, figure.data, figure.layout, JSON.parse(document.getElementById("config").textContent));
    await Plotly.relayout(box, ink());
  }
  const plots = boxes.filter((box) => box.closest("#curves"));
  dark.addEventListener("change", () => boxes.forEach((box) => Plotly.relayout(box, ink())));

  // Plots are drawn while the page is still being laid out, and phones turn round.
  const watcher = new ResizeObserver((entries) => entries.forEach((entry) => Plotly.Plots.resize(entry.target)));
  boxes.forEach((box) => watcher.observe(box));

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
          ...(choice.scale === "log y" ? { "yaxis.autorange": true } : { "yaxis.range": plot.layout.meta.range.slice() }),
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
    for (const select of selects) {
      const value = state.choice[select.name];
      if (Array.from(select.options).some((option) => option.value === value)) select.value = value;
    }
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
