(() => {
  "use strict";
  const held = document.getElementById("page-data");
  const options = { responsive: true, displayModeBar: false, displaylogo: false };

  // What the layouts of all figures share.
  const shared = {
    margin: { l: 46, r: 10, t: 6, b: 38 },
    font: { family: "system-ui, sans-serif", size: 11, color: "#1d2733" },
    paper_bgcolor: "#ffffff",
    plot_bgcolor: "#ffffff",
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    hoverlabel: { bgcolor: "#ffffff", bordercolor: "#8a8f98", font: { size: 12 } },
  };

  // Figures are made for light pages; on dark ones ink, lines and paper take the page's colours.
  const dark = window.matchMedia("screen and (prefers-color-scheme: dark)");
  const coloured = (figure) => {
    if (!dark.matches) return figure;
    const style = getComputedStyle(document.documentElement);
    const [ink, line, paper, edge] = ["--ink", "--line", "--page", "--edge"].map((name) => (
      style.getPropertyValue(name).trim()
    ));
    const replaced = { __proto__: null, "#1d2733": ink, "#e4e7eb": line, "#ffffff": paper, "#b9c0c8": edge };
    const made = JSON.parse(JSON.stringify(figure), (_, value) => replaced[value] ?? value);
    // The scales of heat maps begin near white: what is empty must not look like their dark end.
    if (figure.data?.some((trace) => trace.type === "heatmap")) made.layout.plot_bgcolor = shared.plot_bgcolor;
    return made;
  };

  // plotly.js is large: it is read and inflated when the first figure comes near the screen.
  const appended = (fill) => new Promise((done, fail) => {
    const script = document.createElement("script");
    script.onload = done;
    script.onerror = fail;
    fill(script);
    document.head.append(script);
    if (!script.src) done();
  });
  // Digits of base 85, as launchwise/report/site/rendering.py has them.
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=>?@^_:{|}~";
  const digitOf = new Uint8Array(128);
  [...DIGITS].forEach((letter, digit) => { digitOf[letter.charCodeAt(0)] = digit; });
  const digits = (text) => Uint8Array.from(text, (letter) => digitOf[letter.charCodeAt(0)]);
  // Whole numbers as launchwise/report/site/rendering.py writes them.
  const whole = (texts) => {
    const places = texts.map(digits);
    return Array.from(places[0] ?? [], (_, at) => places.reduceRight((sum, place) => 64 * sum + place[at], 0));
  };
  window.launchwiseWhole = whole;
  const inflate = async (text) => {
    const given = digits(text);
    const words = new DataView(new ArrayBuffer(Math.ceil(given.length / 5) * 4));
    for (let at = 0; at < given.length; at += 5) {
      let word = 0;
      for (let place = at; place < at + 5; place += 1) word = 85 * word + (given[place] ?? 84);
      words.setUint32(at / 5 * 4, word);
    }
    const packed = new Uint8Array(words.buffer, 0, Math.floor(given.length * 4 / 5));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };

  // Data beside the page is loaded on demand, by a script: pages may be plain files.
  const loaded = { __proto__: null };
  const read = (root, path) => loaded[path] ??= appended((script) => {
    script.src = root + path.split("/").map(encodeURIComponent).join("/");
  }).catch(() => { throw new Error(`the file ${path} is missing`); })
    .then(() => inflate(window.launchwiseData[path])).then(JSON.parse);
  window.launchwiseRead = read;
  // Every measured row of a GPU; names of configurations as launchwise/report/wording.py writes them.
  const rowsRead = { __proto__: null };
  window.launchwiseReadRows = (root, study, gpu) => rowsRead[`${study}/${gpu}`] ??= read(root, `data/rows/${study}/${gpu}.js`).then((data) => {
    const { tunables, forms } = data;
    const configurations = data.configurations[0].map((_, at) => Object.fromEntries(tunables.map((name, k) => [name, data.configurations[k][at]])));
    const names = configurations.map((values) => {
      const [shape, named] = forms[values.variant];
      const sides = shape.map((name) => values[name]).join("×");
      return [values.variant, ...(sides ? [sides] : []), ...named.filter((name) => values[name] !== 0).map((name) => `${name}=${window.launchwiseWord(String(values[name]))}`)].join(" ");
    });
    const count = configurations.length;
    const every = whole(data.times).map((steps) => steps - 1);
    const times = data.problems.map((_, at) => every.slice(at * count, (at + 1) * count));
    const known = data.known.map((one) => ({ ...one, places: whole(one.places) }));
    return { ...data, configurations, names, times, known };
  });

  // Panels of the page's figures.
  let figures;
  let known;
  const panels = () => known ??= inflate(window.launchwiseParsed(held.textContent).plots).then((text) => {
    figures = JSON.parse(text);
    return figures;
  });
  window.launchwisePanels = panels;

  // What the scripts of several blocks make.
  window.launchwiseElement = (tag, text = "", kind = "") => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  window.launchwiseNumber = (value, digits = 3) => Number(value.toPrecision(digits)).toLocaleString("en", {
    maximumSignificantDigits: digits, useGrouping: false,
  });

  // A value of a problem, thousands of whole numbers apart, as launchwise/report/wording.py writes it.
  window.launchwiseShown = (value) => String(value).replace(/^\d{4,}$/, (text) => text.replace(/\B(?=(\d{3})+$)/g, "\u202f"));

  // Digits that tell numbers apart, at least so many.
  window.launchwiseApart = (values, digits) => {
    const prints = (count) => new Set(values.map((value) => value.toPrecision(count))).size;
    const most = new Set(values).size;
    let enough = digits;
    while (enough < 6 && prints(enough) < most) enough += 1;
    return enough;
  };

  // What the interval of a ratio of speeds says, as launchwise/base/robust.py does: nothing without limits, which null is not above or below.
  const EQUAL = 1.02;
  window.launchwiseEqual = EQUAL;
  window.launchwiseOutcome = (low, high) => low === null || high === null ? "no interval"
    : low > 1 || high < 1 ? low > 1 ? "faster" : "slower"
      : low >= 1 / EQUAL && high <= EQUAL ? "tie" : "undecided";
  const inflated = async () => {
    if (!window.launchwisePlotly) await appended((script) => { script.src = held.dataset.plotly; });
    const source = await inflate(window.launchwisePlotly);
    delete window.launchwisePlotly;
    await appended((script) => { script.textContent = source; });
  };
  let library;
  const ready = () => Promise.all([panels(), library ??= inflated()]);

  const plain = (node) => {
    const { data, layout } = figures[node.id];
    return { data, layout: { ...shared, ...layout } };
  };
  // A plot's figure as on a light page, with the library loaded.
  window.launchwisePlot = (node) => ready().then(() => window.launchwisePlotted(plain(node)));

  // Pages whose points stand for configurations show their rows.
  const clicked = (node, { curveNumber, pointNumber }) => (
    window.launchwiseClicked?.(node, figures[node.id].data[curveNumber], pointNumber));

  const drawings = new Map();
  const drawn = async (node) => {
    try {
      await ready();
    } catch {
      node.textContent = held.dataset.plotly
        ? "This figure cannot be drawn: assets/plotly.js is missing beside the report, or the browser is too old."
        : "This figure cannot be drawn: the browser is too old.";
      return;
    }
    const figure = window.launchwisePlotted(coloured(plain(node)));
    await Plotly.react(node, figure.data, figure.layout, options);
    node.removeAllListeners("plotly_click");
    node.on("plotly_click", ({ points: [point] }) => clicked(node, point));
  };
  const draw = (node) => {
    if (!drawings.has(node)) drawings.set(node, drawn(node));
    return drawings.get(node);
  };
  // Another figure in the place of one.
  window.launchwiseRedraw = (node, figure) => panels().then(() => {
    figures[node.id] = figure;
    drawings.delete(node);
    return draw(node);
  });
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
  dark.addEventListener("change", () => plots.forEach((node) => {
    if (drawings.delete(node)) draw(node);
  }));
  // Printing does not wait: draw all figures first.
  if (plots.length) window.addEventListener("load", () => setTimeout(() => ready().catch(() => {}), 500));

  // Headings of a table's columns as the script and its files have them: group, title, unit.
  const words = (node) => node.textContent.replaceAll("\u202f", "").replace(/\s+/g, " ").trim();
  const headings = (table) => {
    const [last, above] = [...table.tHead.rows].reverse();
    const groups = above ? [...above.cells].flatMap((cell) => Array(cell.colSpan).fill(words(cell))) : [];
    return [...last.cells].map((cell, place) => {
      const copy = cell.cloneNode(true);
      const unit = copy.querySelector(".unit");
      unit?.remove();
      const title = [groups[place], words(copy)].filter(Boolean).join(", ");
      return unit ? `${title} (${words(unit)})`.trim() : title;
    });
  };
  Object.assign(window, { launchwiseWords: words, launchwiseHeadings: headings });

  // On a phone, a table that is too wide shows each row's cells one after the other, with their headings.
  const phone = window.matchMedia("screen and (max-width: 600px)");
  const stacked = (region) => {
    const table = region.querySelector("table");
    const titles = headings(table);
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, place) => {
        cell.dataset.title = titles[place];
        cell.classList.toggle("none", ["", "–"].includes(words(cell)));
      });
    }
    region.classList.add("stacked");
  };
  // Only elements that scroll need a tab stop.
  const stops = () => document.querySelectorAll(".scroll").forEach((region) => {
    region.classList.remove("stacked");
    if (phone.matches && region.scrollWidth > region.clientWidth) stacked(region);
    const wide = region.scrollWidth > region.clientWidth;
    region.classList.toggle("wide", wide);
    if (wide) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  });
  window.launchwiseStops = stops;
  window.addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);
  stops();

  // Everything at once, as tests ask for it.
  window.launchwiseDrawAll = () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    return Promise.all(plots.map(draw)).then(() => plots.length);
  };
  // Print shows open folds only: a page with all of them would be too long.
  window.addEventListener("beforeprint", () => plots.filter((node) => node.offsetParent).forEach(draw));

  // The address holds what was asked; an older link's notice goes with its address.
  window.launchwiseAddress = (state) => {
    history.replaceState(null, "", `#${state}`);
    document.querySelector(".gone")?.remove();
    const given = new URLSearchParams(state.split("?")[1]);
    carried = given.has("study") ? new URLSearchParams() : carried;
    for (const [name, value] of given) if (value && !OF_A_PAGE.includes(name)) carried.set(name.replace(/^p-/, ""), value);
  };
  // Kernel, GPU and problem go along to the next page.
  const OF_A_PAGE = ["across", "up", "beside", "own", "sort", "gpus"];
  let carried = new URLSearchParams(location.search);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || link.hasAttribute("download") || link.getAttribute("href").startsWith("#")) return;
    const url = new URL(link.href);
    if (url.protocol !== location.protocol || !url.pathname.endsWith(".html") || url.search || url.hash.includes("?")) return;
    url.search = carried;
    link.href = url;
  });
  // A link into a closed fold would lead nowhere, as would one to a section that holds nothing else.
  const reveal = () => {
    const id = decodeURIComponent(location.hash.slice(1).split("?")[0]);
    const target = document.getElementById(id);
    document.querySelector(".gone")?.remove();
    if (id && !target) {
      const gone = document.createElement("p");
      gone.className = "notice gone";
      gone.textContent = `This page holds no part “${id}”; the link is older, or its study is not in this report.`;
      document.querySelector("main").prepend(gone);
    }
    for (let node = target?.querySelector(":scope > h2 + details:last-child") ?? target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
  };
  window.addEventListener("hashchange", reveal);
  reveal();
  // What scripts add moves the place that a link led to: it stays in view until the reader goes on.
  const arrive = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1).split("?")[0]));
    if (!target) return;
    const follow = () => target.scrollIntoView({ behavior: "instant" });
    const watcher = new ResizeObserver(follow);
    const leave = () => watcher.disconnect();
    for (const kind of ["wheel", "keydown", "pointerdown", "touchstart"]) window.addEventListener(kind, leave, { once: true });
    setTimeout(leave, 3000);
    watcher.observe(document.querySelector("main"));
  };
  window.addEventListener("load", arrive);

  // The list of studies closes where another place is clicked, or by Escape.
  const menu = document.querySelector("nav.pages details");
  document.addEventListener("click", (event) => { if (menu && !menu.contains(event.target)) menu.open = false; });
  document.addEventListener("keydown", (event) => { if (menu && event.key === "Escape") menu.open = false; });

  // Points of a trace, with what is said of each: markers and lines, cells of a heat map by row.
  const pointsOf = (trace) => {
    if (trace.hoverinfo === "skip") return [];
    if (trace.type === "heatmap") {
      return trace.y.flatMap((y, row) => trace.x.flatMap((x, column) => (
        (trace.z[row][column] ?? null) === null ? [] : [{
          pointNumber: [row, column], text: [y, trace.customdata?.[row]?.[column], `${x}: ${trace.z[row][column]}`],
        }])));
    }
    if (trace.type !== "scatter") return [];
    return trace.x.flatMap((x, pointNumber) => (x === null || trace.y[pointNumber] === null ? [] : [{
      pointNumber, text: [trace.name, trace.text?.[pointNumber], `${x}: ${trace.y[pointNumber]}`],
    }]));
  };

  // Arrow keys read a figure's points one by one, as the mouse does.
  for (const panels of document.querySelectorAll(".panels")) {
    const nodes = [...panels.querySelectorAll(".plot")];
    const said = document.createElement("p");
    said.className = "said";
    said.setAttribute("role", "status");
    panels.after(said);
    let place = -1;
    let current;
    panels.addEventListener("keydown", async (event) => {
      if (event.key === "Enter" && current) clicked(current.node, current);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      await Promise.all(nodes.map(draw));
      const points = nodes.flatMap((node) => (node.data ?? []).flatMap((trace, curveNumber) => (
        pointsOf(trace).map((point) => ({ node, curveNumber, ...point })))));
      if (!points.length) return;
      place = (place + step + points.length) % points.length;
      current = points[place];
      const { node, curveNumber, pointNumber, text } = current;
      nodes.filter((other) => other !== node).forEach((other) => Plotly.Fx.unhover(other));
      const cell = Array.isArray(pointNumber);
      if (cell) Plotly.Fx.hover(node, { xval: pointNumber[1], yval: pointNumber[0] }, "xy");
      else Plotly.Fx.hover(node, [{ curveNumber, pointNumber }]);
      said.textContent = text.filter((one) => one).join(", ");
    });
    panels.addEventListener("blur", () => {
      nodes.filter((node) => node.data).forEach((node) => Plotly.Fx.unhover(node));
      said.textContent = "";
    });
  }
})();
