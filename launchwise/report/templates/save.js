(() => {
  "use strict";
  // Figures as SVG and PNG, tables as CSV: made in the page, from what it shows.
  const PNG_SCALE = 3;
  const WIDTH = { alone: 760, panel: 400, title: 20, key: 20, gap: 14, columns: 3, name: 120 };
  const FONT = "Arial, Helvetica, sans-serif";
  const LIGHT = { "--ink": "#1d2733", "--soft": "#55606d", "--line": "#d9dee4", color: "#1d2733" };
  const SVG = "http://www.w3.org/2000/svg";
  const owner = document.querySelector(".cite")?.dataset.name ?? "";

  const slug = (text) => text.replace(/[^\p{L}\p{N}._=]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, WIDTH.name);
  const stem = (...parts) => slug(parts.filter(Boolean).join(" "));
  const hand = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    return { blob, name };
  };

  const made = (tag, attributes, text = "") => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const label = (text, x, y, more = {}) => made("text", { x, y, fill: LIGHT.color, "font-family": FONT, "font-size": 12, ...more }, text);
  const widthOf = (text) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `12px ${FONT}`;
    return pen.measureText(text).width;
  };
  const sheet = (width, height, caption) => {
    const svg = made("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` });
    svg.append(made("desc", {}, caption), made("rect", { width, height, fill: "#ffffff" }));
    return svg;
  };

  // A copy whose elements carry their style, as on a light page.
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor"];
  const styled = (svg) => {
    const box = document.createElement("div");
    box.className = "saving";
    for (const [name, value] of Object.entries(LIGHT)) box.style.setProperty(name, value);
    const copy = svg.cloneNode(true);
    box.append(copy);
    document.body.append(box);
    for (const element of copy.querySelectorAll("*")) {
      const style = getComputedStyle(element);
      for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
      if (element.tagName === "text") element.setAttribute("font-family", FONT);
      element.removeAttribute("class");
    }
    box.remove();
    return copy;
  };

  const keysOf = (figure, width) => {
    const lines = [];
    let [x, y] = [0, 0];
    for (const item of figure.querySelectorAll(".keys li")) {
      const text = item.textContent.trim();
      const own = 32 + widthOf(text) + 18;
      if (x && x + own > width) [x, y] = [0, y + WIDTH.key];
      const swatch = styled(item.querySelector("svg"));
      swatch.setAttribute("x", x);
      swatch.setAttribute("y", y + 4);
      lines.push(swatch, label(text, x + 32, y + 14));
      x += own;
    }
    return { lines, height: lines.length ? y + WIDTH.key + 4 : 0 };
  };

  // All panels of a figure on one sheet, with titles and legend.
  const plotted = async (figure, caption) => {
    const panels = [...figure.querySelectorAll(".panel")];
    const limit = parseFloat(figure.querySelector(".panels").style.maxWidth) || WIDTH.alone;
    const columns = Math.min(panels.length, WIDTH.columns);
    const width = columns === 1 ? Math.min(limit, WIDTH.alone) : WIDTH.panel;
    const height = parseFloat(panels[0].querySelector(".plot").style.height);
    const whole = columns * (width + WIDTH.gap) - WIDTH.gap;
    const keys = keysOf(figure, whole);
    const step = height + WIDTH.title + WIDTH.gap;
    const svg = sheet(whole, keys.height + Math.ceil(panels.length / columns) * step - WIDTH.gap, caption);
    svg.append(...keys.lines);
    for (const [place, panel] of panels.entries()) {
      const [x, y] = [(place % columns) * (width + WIDTH.gap), keys.height + Math.floor(place / columns) * step];
      const { data, layout } = await window.launchwisePlot(panel.querySelector(".plot"));
      const like = { ...layout, width, height, font: { ...layout.font, family: FONT } };
      const text = await Plotly.toImage({ data, layout: like }, { format: "svg", width, height, imageDataOnly: true });
      const plot = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      plot.setAttribute("x", x);
      plot.setAttribute("y", y + WIDTH.title);
      svg.append(label(panel.querySelector(".panel-title")?.textContent ?? "", x, y + 14, { "font-weight": "bold" }), plot);
    }
    return svg;
  };
  const png = async (svg) => {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = PNG_SCALE * svg.getAttribute("width");
    canvas.height = PNG_SCALE * svg.getAttribute("height");
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };
  const saveFigure = async (figure, kind) => {
    const caption = figure.querySelector("figcaption").textContent.trim();
    const name = figure.dataset.name || figure.id.replace(/^fig-/, "");
    const svg = await plotted(figure, caption);
    const blob = kind === "PNG" ? await png(svg)
      : new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
    return hand(blob, `${stem(name.startsWith(owner) ? "" : owner, name)}.${kind.toLowerCase()}`);
  };

  // Cells as shown; what stands small below a value has a column of its own.
  // Narrow gaps between thousands are no part of a number.
  const words = window.launchwiseWords;
  const headings = window.launchwiseHeadings;
  const parted = (cell) => {
    const copy = cell.cloneNode(true);
    const detail = [...copy.querySelectorAll(".detail")].map((one) => { one.remove(); return words(one); }).join(" ");
    const text = words(copy);
    return [text === "–" ? "" : text, detail];
  };
  const csv = (table) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows].map((row) => [...row.cells].map(parted)));
    const titles = headings(table);
    const detailed = titles.map((_, place) => rows.some((row) => row[place]?.[1]));
    const wide = (cells, more) => titles.flatMap((_, place) => (
      detailed[place] ? [cells(place), more(place)] : [cells(place)]));
    const lines = [wide((place) => titles[place], (place) => `${titles[place]}, detail`),
      ...rows.map((row) => wide((place) => row[place]?.[0] ?? "", (place) => row[place]?.[1] ?? ""))];
    return lines.map((line) => `${line.map(window.launchwiseCell).join(",")}\r\n`).join("");
  };
  // Tables that follow controls: the study and the problem that are chosen are part of the name.
  const nameOf = (table) => {
    const caption = words(table.caption);
    const id = table.dataset.for ?? table.closest("[id$='-answer']")?.id.replace(/-answer$/, "");
    const form = id && document.getElementById(id);
    if (!form) return stem(owner, caption);
    const fields = [...form.elements].filter((field) => field.name && field.value && field.name !== "study");
    const asked = fields.map((field) => `${field.name.replace(/^p-/, "")}=${field.value}`);
    return stem(form.elements.study?.value ?? owner, ...asked, caption);
  };
  // A table of booktabs: one line of headings, details in brackets.
  const escaped = (text) => text.replace(/[\\{}]/g, "").replace(/[&%$#_]/g, "\\$&").replace(/[~^]/g, "\\$&{}")
    .replaceAll("×", "$\\times$").replaceAll("–", "--").replaceAll("µ", "\\textmu{}").replaceAll("≤", "$\\le$").replaceAll("≥", "$\\ge$");
  const latex = (table) => {
    const line = (cells) => `${cells.map(escaped).join(" & ")} \\\\`;
    const rows = [...table.tBodies].flatMap((body) => [...body.rows].map((row) => (
      line([...row.cells].map((cell) => { const [text, detail] = parted(cell); return detail ? `${text} (${detail})` : text; })))));
    const titles = headings(table);
    const columns = titles.map((_, place) => (place && !table.tBodies[0]?.rows[0]?.cells[place]?.classList.contains("text") ? "r" : "l"));
    return ["\\begin{table}", `\\caption{${escaped(words(table.caption))}}`, `\\begin{tabular}{${columns.join("")}}`, "\\toprule",
      line(titles), "\\midrule", ...rows, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""].join("\n");
  };
  const saveTable = (table, kind) => kind === "CSV" ? hand(new Blob([csv(table)], { type: "text/csv" }), `${nameOf(table)}.csv`)
    : hand(new Blob([latex(table)], { type: "application/x-tex" }), `${nameOf(table)}.tex`);

  const buttons = (kinds, caption, save) => {
    const group = document.createElement("div");
    group.className = "save";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Download");
    // Within a region that is read aloud, they would be read at each change.
    group.setAttribute("aria-live", "off");
    for (const kind of kinds) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `${kind}: ${caption}`);
      button.addEventListener("click", () => {
        window.launchwiseSaved = Promise.resolve(kind).then(save).catch(() => {
          group.textContent = "This cannot be saved: assets/plotly.js is missing beside the report, or the browser is too old.";
        });
      });
      group.append(button);
    }
    return group;
  };
  const offer = (root) => {
    for (const figure of root.querySelectorAll("figure:not(.saved)")) {
      figure.classList.add("saved");
      figure.append(buttons(["SVG", "PNG"], figure.querySelector("figcaption").textContent.trim(), (kind) => saveFigure(figure, kind)));
    }
    for (const table of root.querySelectorAll("table:not(.saved)")) {
      table.classList.add("saved");
      const region = table.closest(".scroll") ?? table;
      const save = buttons(["CSV", "LaTeX"], words(table.caption), (kind) => saveTable(table, kind));
      // In the answer box behind its own controls: the keyboard reaches those first.
      if (table.closest(".answer")) table.closest(".answer").append(save);
      else region.after(save);
    }
  };
  offer(document.querySelector("main"));
  const cite = document.querySelector(".cite[data-bibtex]");
  if (cite) cite.after(buttons(["BibTeX"], "citation", () => hand(new Blob([cite.dataset.bibtex], { type: "application/x-bibtex" }), "launchwise.bib")));
  for (const box of document.querySelectorAll(".answer, .compared")) {
    new MutationObserver(() => offer(box)).observe(box, { childList: true, subtree: true });
  }
})();
