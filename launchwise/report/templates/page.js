(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const options = { responsive: true, displayModeBar: false, displaylogo: false };

  const draw = (node) => {
    if (node.dataset.drawn) return;
    node.dataset.drawn = "yes";
    const figure = page[node.id];
    Plotly.newPlot(node, figure.data, figure.layout, options);
  };
  const plots = [...document.querySelectorAll(".plot")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "600px" });
  plots.forEach((node) => watcher.observe(node));

  // Paper shows everything at once; tests ask for the same.
  window.launchwiseDrawAll = () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    plots.forEach(draw);
    return plots.length;
  };
  window.addEventListener("beforeprint", window.launchwiseDrawAll);

  // A link into a closed fold would lead nowhere.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
  };
  window.addEventListener("hashchange", reveal);
  reveal();
  const contents = document.getElementById("contents");
  if (contents && window.matchMedia("(max-width: 900px)").matches) contents.open = false;

  for (const form of document.querySelectorAll(".lookup")) {
    const { answers, numbers } = page[form.id];
    const body = document.querySelector(`.answers[data-for="${form.id}"] tbody`);
    const answer = () => {
      const key = [...form.elements].map((field) => field.value).join("|");
      const rows = answers[key] || [["–", "not measured", ...Array(numbers.length - 2).fill("–")]];
      body.replaceChildren(...rows.map((cells) => {
        const line = document.createElement("tr");
        cells.forEach((text, place) => {
          const cell = document.createElement(place ? "td" : "th");
          if (!place) cell.scope = "row";
          if (!numbers[place]) cell.className = "text";
          cell.textContent = text;
          line.append(cell);
        });
        return line;
      }));
    };
    form.addEventListener("change", answer);
    form.addEventListener("submit", (event) => event.preventDefault());
    answer();
  }
})();
