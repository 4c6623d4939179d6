(() => {
  "use strict";
  const page = window.launchwiseParsed(document.getElementById("page-data").textContent);
  const form = document.querySelector(".landscape");
  if (!form) return;
  const first = page[form.id];
  const asked = [...form.querySelectorAll("[name^='p-']")];
  const nameOf = (one) => one.name.slice(2);
  const node = document.getElementById(first.plot);
  const status = document.querySelector(".landscape-status");
  const caption = node.closest("figure").querySelector("figcaption");
  const field = (name) => form.elements[name];
  // Files of the figure are named by what it shows.
  const named = (gpu, problem, axes = []) => {
    const values = asked.map((one, place) => `${nameOf(one)}=${problem[place]}`);
    node.closest("figure").dataset.name = [first.study, "landscape", gpu, ...values, ...axes].join(" ");
  };
  named(first.gpu, first.problem);

  const load = (gpu) => window.launchwiseReadRows(first.root, first.study, gpu);
  let like;

  const number = window.launchwiseNumber;
  const compared = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

  // The timed configurations of a problem, the fastest first.
  const rowsOf = (data, problem) => {
    const place = data.problems.findIndex((one) => one.join("|") === problem.join("|"));
    if (place < 0) return null;
    const best = data.best_ms[place];
    // What is known of rows stands by problem, then by configuration.
    let order = data.times.slice(0, place).reduce((sum, one) => sum + one.filter((steps) => steps >= 0).length, 0);
    const rows = data.times[place].flatMap((steps, at) => steps < 0 ? [] : [{
      at, steps, order: order++, name: data.names[at], variant: data.configurations[at].variant, values: data.configurations[at],
      time: best * Math.exp(steps / first.steps), share: 100 * Math.exp(-steps / first.steps),
    }]).sort((a, b) => a.steps - b.steps || a.at - b.at);
    rows.forEach((row, rank) => { row.place = rank + 1; });
    return { rows, untimed: data.untimed[place], limits: [["bytes", data.limits.bytes[place]], ["FLOP", data.limits.flop[place]]], baseline: rows.find((row) => row.at === data.baseline) };
  };
  window.launchwiseRowsOf = {
    rowsOf: (gpu, problem) => load(gpu).then((data) => ({ ...rowsOf(data, problem), problem, known: data.known })),
    tunables: (row) => first.variants[row.variant][2],
    titles: first.titles, parameters: () => asked.map(nameOf), number,
  };
  const has = (row, axis) => !(axis in first.titles) || first.variants[row.variant][2].includes(axis);
  const value = (row, axis) => axis in first.titles ? row.values[axis] : row[axis];

  const axis = (like, title, more) => {
    const kept = ["gridcolor", "linecolor", "showline", "zeroline", "fixedrange", "automargin", "ticks", "ticklen", "tickcolor"];
    return { ...Object.fromEntries(kept.map((name) => [name, like[name]])), title: { ...like.title, text: title }, ...more };
  };
  // A logarithmic axis with few labels, as launchwise/report/theme.py makes it.
  const labelOf = (tick) => {
    const [size, letter] = [[1e9, "G"], [1e6, "M"], [1e4, "k"]].find(([least]) => tick >= least) ?? [1, ""];
    return `${Number((tick / (letter === "k" ? 1e3 : size)).toPrecision(6))}${letter}`;
  };
  const logarithmic = (values) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.log10);
    const pad = Math.max(0.03 * (most - least), 0.02);
    const [low, high] = [least - pad, most + pad];
    const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, k) => Math.floor(low) + k);
    const ticksOf = (steps) => powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`)))
      .filter((tick) => low <= Math.log10(tick) && Math.log10(tick) <= high);
    const ticks = first.ticks.map(ticksOf).find((found) => found.length >= 4) ?? ticksOf(first.ticks.at(-1));
    return { type: "log", range: [low, high], tickvals: ticks, ticktext: ticks.map(labelOf) };
  };
  const categories = (rows, name) => [...new Set(rows.map((row) => value(row, name)))].sort(compared);
  const scaled = (rows, name, like, title) => {
    if (name in first.titles) return axis(like, title, { type: "category", categoryorder: "array", categoryarray: categories(rows, name).map(String) });
    return axis(like, title, name === "time" ? logarithmic(rows.map((row) => row.time)) : { rangemode: name === "share" ? "tozero" : "normal" });
  };
  const written = (row, name) => name in first.titles ? String(value(row, name)) : value(row, name);
  const title = (name, select) => [...select.options].find((option) => option.value === name).textContent;

  // The fastest of each pair of values, where both axes are tunables.
  const grid = (rows, across, up, layout) => {
    const columns = categories(rows, across);
    const lines = categories(rows, up);
    const best = new Map();
    for (const row of rows) {
      const key = `${value(row, across)}|${value(row, up)}`;
      if (!best.has(key)) best.set(key, row);
    }
    const cells = (read) => lines.map((line) => columns.map((column) => {
      const row = best.get(`${column}|${line}`);
      return row ? read(row) : null;
    }));
    return {
      data: [{
        type: "heatmap", x: columns.map(String), y: lines.map(String), z: cells((row) => Number(row.share.toFixed(1))),
        customdata: cells((row) => row.name), text: cells((row) => row.share.toFixed(0)), texttemplate: "%{text}",
        zmin: Math.min(60, ...[...best.values()].map((row) => row.share)), zmax: 100, colorscale: [[0, "#fdf6e3"], [0.35, "#f0c674"], [0.7, "#5aa3b0"], [1, "#0b3c5d"]],
        xgap: 1, ygap: 1, hoverongaps: false, colorbar: { thickness: 8, outlinewidth: 0, tickfont: { size: 10 } },
        hovertemplate: "%{customdata}<br>%{z:.1f} % of the best speed<extra></extra>",
      }],
      layout: { ...like, xaxis: axis(like.xaxis, layout[0], { type: "category", showgrid: false }), yaxis: axis(like.yaxis, layout[1], { type: "category", showgrid: false }) },
    };
  };

  const cloud = (found, rows, across, up, layout) => {
    const step = Math.max(1, (rows.length - 1) / (first.most - 1));
    const drawn = new Set(Array.from({ length: Math.min(first.most, rows.length) }, (_, k) => rows[Math.round(k * step)]));
    const best = new Map();
    for (const row of rows) if (!best.has(value(row, across))) best.set(value(row, across), row);
    if (across in first.titles) for (const row of best.values()) drawn.add(row);
    const traces = Object.entries(first.variants).flatMap(([variant, [color, symbol]]) => {
      const own = rows.filter((row) => row.variant === variant && drawn.has(row));
      return !own.length ? [] : [{
        type: "scatter", mode: "markers", name: variant, x: own.map((row) => written(row, across)), y: own.map((row) => written(row, up)),
        text: own.map((row) => row.name), marker: { size: 6, color, symbol, opacity: 0.85 },
        customdata: own.map((row) => `${number(row.time, 4)} ms, ${number(row.share)} % of the best speed`),
        hovertemplate: "%{text}<br>%{customdata}<extra></extra>",
      }];
    });
    const ink = { color: "#1d2733", width: 1 };
    if (across in first.titles) {
      const ends = categories(rows, across).map((one) => best.get(one));
      traces.push({
        type: "scatter", mode: "lines", name: "fastest with this value", x: ends.map((row) => written(row, across)), y: ends.map((row) => written(row, up)),
        line: { ...ink, dash: "dot" }, hoverinfo: "skip",
      });
    } else if (found.baseline) {
      traces.push({
        type: "scatter", mode: "lines", name: "baseline", x: [1, rows.length], y: [found.baseline[up], found.baseline[up]],
        line: { ...ink, dash: "dash" }, hovertemplate: "baseline %{y:.4~g}<extra></extra>",
      });
    }
    return { data: traces, layout: { ...like, xaxis: scaled(rows, across, like.xaxis, layout[0]), yaxis: scaled(rows, up, like.yaxis, layout[1]) }, drawn: drawn.size };
  };

  const chosen = () => asked.map((one) => one.value);
  const notice = (text) => { status.textContent = text; };
  const show = (remember) => Promise.all([load(field("gpu").value), window.launchwisePanels()]).then(([data, panels]) => {
    like ??= panels[node.id].layout;
    const problem = chosen();
    // As launchwise/report/wording.py names a problem.
    const words = asked.map((one) => /^\d+$/.test(one.value) ? `${nameOf(one)}=${window.launchwiseShown(one.value)}` : one.value).join(", ");
    const gpu = field("gpu").value;
    const found = rowsOf(data, problem);
    const [across, up] = [field("across").value, field("up").value];
    const rows = (found?.rows ?? []).filter((row) => has(row, across) && has(row, up));
    if (remember) {
      const state = new URLSearchParams({ gpu, across, up });
      asked.forEach((one) => state.set(one.name, one.value));
      window.launchwiseAddress(`${form.id}?${state}`);
    }
    if (!rows.length) {
      notice(`${words} was not measured on ${gpu}: the figure shows what it did before.`);
      return undefined;
    }
    const titles = [title(across, field("across")), title(up, field("up"))];
    const made = up in first.titles && across in first.titles ? grid(rows, across, up, titles) : cloud(found, rows, across, up, titles);
    const near = found.rows.filter((row) => row.share >= 100 / 1.02).length;
    const untimed = found.untimed ? `, ${found.untimed} more without a time` : "";
    const { values, places } = data.known.find((one) => one.title === "status") ?? { values: [], places: [] };
    // One launch proves nothing: as in the sentence that the page begins with.
    const slow = (row) => values[places.length ? places[row.order] : 0] === "slow";
    const repeated = found.rows.filter((row) => !slow(row));
    const slowest = repeated.length ? ` The slowest with repeats takes ${number(100 / repeated.at(-1).share)} times as long as the best.` : "";
    const stopped = repeated.length < found.rows.length ? ` ${found.rows.length - repeated.length} slow ones were stopped early: their times are those of one launch.` : "";
    notice(`${words}, on ${gpu}: ${found.rows.length} configurations${untimed}; ${near} within 2 % of the best, ${found.rows[0].name}.${slowest}${stopped}`);
    const count = made.drawn === undefined || made.drawn === rows.length ? "Every configuration" : `${made.drawn} of ${rows.length} configurations`;
    named(gpu, problem, [across, up]);
    for (const trace of made.data) trace.meta = { gpu, problem };
    caption.textContent = made.drawn === undefined
      ? `${words}, on ${gpu}: % of the best speed that the fastest configuration with these two values reaches.`
      : `${count} of ${words}, on ${gpu}${rows.length < found.rows.length ? ", of variants that have what the axes show" : ""}.`;
    return window.launchwiseRedraw(node, { data: made.data, layout: made.layout });
  }).catch((error) => notice(`The figure cannot be changed: ${error.message}.`));

  // GPU and problem that another page asked, if they were measured.
  const carried = () => {
    const state = new URLSearchParams(location.search);
    const fields = [[field("gpu"), state.get("gpu")], ...asked.map((one) => [one, state.get(nameOf(one))])];
    if (!fields.every(([select, text]) => [...(select.options ?? [select])].some((option) => option.value === text))) return Promise.resolve();
    for (const [select, text] of fields) select.value = text;
    return show(false);
  };

  const open = () => {
    const [name, query] = location.hash.split("?");
    if (name !== `#${form.id}` || query === undefined) return carried();
    const state = new URLSearchParams(query);
    const gone = [];
    const set = (select, text) => {
      if (text === null) return;
      if ([...(select.options ?? [])].some((option) => option.value === text)) select.value = text;
      else if (select.value !== text) gone.push(`${select.name} “${text}”`);
    };
    for (const one of ["gpu", "across", "up"]) set(field(one), state.get(one));
    for (const one of asked) set(one, state.get(one.name));
    return show(false).then(() => {
      form.scrollIntoView();
      if (gone.length) notice(`This report holds no ${gone.join(", no ")}; the link is older. ${status.textContent}`);
    });
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => { window.launchwiseLandscape = show(true); });
  window.addEventListener("hashchange", () => { window.launchwiseLandscape = open(); });
  window.launchwiseLandscape = open();
})();
