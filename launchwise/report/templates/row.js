(() => {
  "use strict";
  // A click on a point that stands for a configuration, or Enter, shows its whole row.
  // landscape.js of a study's first page has the rows.
  const rows = () => window.launchwiseRowsOf;
  const element = window.launchwiseElement;

  // The problem of a point: its size is the one on the axis.
  const problemAt = ({ problem }, x) => problem.map((one) => one ?? String(x));
  const pointOf = (trace, at) => (Array.isArray(at)
    ? { name: trace.customdata?.[at[0]]?.[at[1]] }
    : { name: trace.text?.[at], x: trace.x[at] });

  const linesOf = (found, row, gpu) => {
    const { tunables, titles, parameters, number } = rows();
    const own = tunables(row);
    const given = [["GPU", gpu], ...parameters().map((name, k) => [name, found.problem[k]])];
    const chosen = own.map((name) => [titles[name] ?? name, row.values[name]]);
    const known = found.known.flatMap(({ title, unit, values, places }) => {
      const value = values[places.length ? places[row.order] : 0];
      return value === null ? [] : [[title, unit ? `${value} ${unit}` : value]];
    });
    // Warm caches may serve what the limit takes from memory.
    const [by, limit] = found.limits.sort(([, one], [, other]) => other - one)[0];
    const least = { bytes: "the least bytes at the measured bandwidth", FLOP: "the FLOP at the measured rate" };
    const reached = limit ? [["physical limit", `${number(100 * limit / row.time)} % reached: ${least[by]}`]] : [];
    return [...given, ...chosen, ["time", `${number(row.time, 4)} ms`],
      ["speed", `${number(row.share)} % of the best`], ["place", `${row.place} of ${found.rows.length}`], ...reached, ...known];
  };
  const copied = async (text, field) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      field.select();
      document.execCommand("copy");
    }
  };
  const panelOf = (figure, found, row, gpu) => {
    const box = element("div", "", "row");
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "The row of a point");
    box.tabIndex = -1;
    const list = element("dl");
    for (const [title, value] of linesOf(found, row, gpu)) {
      const pair = element("div");
      pair.append(element("dt", title), element("dd", String(value)));
      list.append(pair);
    }
    const text = rows().tunables(row).map((name) => `${name}=${row.values[name]}`).join(" ");
    const field = element("input");
    field.value = text;
    field.readOnly = true;
    field.setAttribute("aria-label", "The configuration as text");
    const copy = element("button", "Copy");
    const close = element("button", "Close");
    for (const button of [copy, close]) button.type = "button";
    copy.addEventListener("click", () => copied(text, field).then(() => { copy.textContent = "Copied"; }));
    const gone = () => { box.remove(); figure.querySelector(".panels").focus(); };
    close.addEventListener("click", gone);
    box.addEventListener("keydown", (event) => { if (event.key === "Escape") gone(); });
    const take = element("div", "", "take");
    take.append(field, copy, close);
    box.append(element("p", row.name, "label"), list, take);
    return box;
  };
  window.launchwiseClicked = (node, trace, at) => {
    const figure = node.closest("figure");
    const { name, x } = pointOf(trace, at);
    if (!trace.meta || !name) return undefined;
    const show = (...content) => {
      figure.querySelector(".row")?.remove();
      figure.querySelector("figcaption").before(...content);
    };
    window.launchwiseRow = rows().rowsOf(trace.meta.gpu, problemAt(trace.meta, x)).then((found) => {
      const row = found.rows?.find((one) => one.name === name);
      const box = row ? panelOf(figure, found, row, trace.meta.gpu) : element("p", "This report holds no row of this point.", "row");
      show(box);
      box.focus({ preventScroll: true });
      box.scrollIntoView({ block: "nearest" });
    }).catch((error) => show(element("p", `The row cannot be shown: ${error.message}.`, "row")));
    return window.launchwiseRow;
  };
  const figures = [...document.querySelectorAll("figure:has(.plot)")];
  if (figures.length) {
    window.launchwisePanels().then((panels) => figures.forEach((figure) => {
      const plots = [...figure.querySelectorAll(".plot")];
      if (plots.some((node) => panels[node.id].data.some((trace) => trace.meta))) {
        figure.querySelector("figcaption").before(element("p", "Click a point for its whole row; with the keyboard: arrow keys, then Enter.", "hint"));
      }
    })).catch(() => {});
  }
})();
