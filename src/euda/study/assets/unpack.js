"use strict";
// plotly.js is packed into the page. It is unpacked first; then everything that waits for it runs, in its order.
(async function () {
  function run(code) {
    const script = document.createElement("script");
    script.textContent = code;
    document.head.append(script);
  }
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  run(await new Response(unpacked).text());
  document.querySelectorAll('script[type="text/later"]').forEach((script) => run(script.textContent));
})();
