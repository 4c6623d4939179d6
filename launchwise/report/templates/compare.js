(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const form = document.querySelector(".compare");
  const box = document.getElementById(`${form.id}-answer`);
  const { first, tdp, prices } = page[form.id];
  const [GPU, PROBLEM, BEST, LOW, HIGH, , LEAST, GAIN, , , JOULE, BASELINE_JOULE] = [...Array(12).keys()];

  const loaded = {};
  const load = (study) => loaded[study] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `data/${encodeURIComponent(study)}.gpus.js`;
    script.onload = () => done(window.launchwiseComparisons[study]);
    script.onerror = () => failed(new Error(`the file data/${study}.gpus.js is missing`));
    document.head.append(script);
  });

  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const mean = (values) => values.length && values.every((value) => value !== null && value > 0)
    ? Math.exp(total(values.map(Math.log)) / values.length) : null;
  const ratios = (over, under) => over.map((value, k) => (
    value === null || under[k] === null ? null : value / under[k]));
  // Student's t at 97.5 % by its expansion around the normal quantile (Fisher, Cornish 1960).
  const student = (freedom) => [1.959964, 2.372271, 2.822504, 2.555848, 1.589534]
    .reduce((sum, part, power) => sum + part / freedom ** power, 0);
  const FEWEST = 5;
  const overProblems = (values) => {
    const middle = mean(values);
    if (middle === null || values.length < FEWEST) return [null, null];
    const spread = total(values.map((value) => Math.log(value / middle) ** 2)) / (values.length - 1);
    const width = student(values.length - 1) * Math.sqrt(spread / values.length);
    return [middle * Math.exp(-width), middle * Math.exp(width)];
  };
  const speedLimits = (own, other, measured) => {
    const column = (rows, at) => rows.map((row) => row[at]);
    if (measured && own.length > 1) return overProblems(ratios(column(other, BEST), column(own, BEST)));
    if (measured) {
      const half = (row) => row[HIGH] === null ? 0 : row[HIGH] / row[BEST] - 1;
      const width = Math.hypot(half(own[0]), half(other[0]));
      const ratio = other[0][BEST] / own[0][BEST];
      return [ratio * (1 - width), ratio * (1 + width)];
    }
    return [mean(ratios(column(other, LOW), column(own, HIGH))), mean(ratios(column(other, HIGH), column(own, LOW)))];
  };

  const compare = (data, asked) => {
    const fits = data.problems.map((problem) => data.parameters.every((one, k) => (
      asked.problem[one.name] === undefined || String(problem[k]) === asked.problem[one.name])));
    const shown = data.gpus.map((gpu, place) => ({ ...gpu, place, rows: new Map() }))
      .filter((gpu) => asked.gpus !== "measured" || gpu.basis === "measured");
    const of = new Map(shown.map((gpu) => [gpu.place, gpu]));
    for (const entry of data.entries) {
      if (fits[entry[PROBLEM]] && of.has(entry[GPU])) of.get(entry[GPU]).rows.set(entry[PROBLEM], entry);
    }
    const without = shown.filter((gpu) => !gpu.rows.size).map((gpu) => gpu.name);
    const having = shown.filter((gpu) => gpu.rows.size);
    const common = data.problems.map((_, place) => place)
      .filter((place) => having.every((gpu) => gpu.rows.has(place)));
    const reference = having.find((gpu) => gpu.name === asked.beside) ?? having[0];
    const rows = !common.length ? [] : having.map((gpu) => {
      const own = common.map((place) => gpu.rows.get(place));
      const other = common.map((place) => reference.rows.get(place));
      const column = (rows_, at) => rows_.map((row) => row[at]);
      const measured = gpu.basis === "measured" && reference.basis === "measured";
      const best = mean(column(own, BEST));
      const gains = column(own, GAIN);
      const joule = mean(column(own, JOULE));
      const [euro, perHour, date, source] = prices[gpu.name] ?? [null, null, null, null];
      return {
        gpu: gpu.name, basis: gpu.basis, best,
        speed: mean(ratios(column(other, BEST), column(own, BEST))),
        limits: gpu === reference ? [null, null] : speedLimits(own, other, measured),
        percent: measured ? 95 : 90,
        gain: mean(gains),
        gainLimits: own.length === 1 ? own[0].slice(GAIN + 1, GAIN + 3) : overProblems(gains),
        roofline: mean(ratios(column(own, LEAST), column(own, BEST))),
        joule, jouleBeside: mean(ratios(column(own, JOULE), column(own, BASELINE_JOULE))),
        tdp: tdp[gpu.name] ?? null, euro, perHour, date, source,
        perEuro: perHour === null ? null : 3.6e6 / perHour / best,
        perKwh: joule === null ? null : 3.6e6 / joule,
      };
    });
    return { rows, without, problems: common.length, beside: reference?.name };
  };
  window.launchwiseCompare = (study, asked) => load(study).then((data) => compare(data, asked));

  const number = (value, digits = 3) => value === null ? "–"
    : value < 1e6 ? Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false })
      : value.toExponential(digits - 1).replace("e+", "e");
  const limits = ([low, high], digits) => low === null || high === null ? "–" : `${number(low, digits)} to ${number(high, digits)}`;
  const digits = (row) => row.basis === "measured" ? 3 : 2;
  const outcome = ([low, high]) => ({ tie: ", a tie", undecided: ", undecided" })[window.launchwiseOutcome(low, high)] ?? "";
  const between = (found, digits_, percent) => found[0] === null || found[1] === null ? ""
    : `${limits(found, digits_)} (${percent} %)${outcome(found)}`;
  // Title, unit, text, field, second line.
  const COLUMNS = [
    // First: phones show two columns.
    ["speed", "", (row) => number(row.speed, digits(row)), "speed", (row) => between(row.limits, digits(row), row.percent)],
    ["basis", "", (row) => row.basis, "text"],
    ["best time", "ms", (row) => number(row.best, row.basis === "measured" ? 4 : 2), "best"],
    ["gain in pairs", "× usual", (row) => number(row.gain), "gain", (row) => between(row.gainLimits, 3, 95)],
    ["of roofline", "%", (row) => number(row.roofline === null ? null : 100 * row.roofline, 2), "roofline"],
    ["energy", "J per run", (row) => number(row.joule), "joule",
      (row) => row.jouleBeside === null ? "" : `${number(row.jouleBeside)} × baseline`],
    ["runs", "per kWh", (row) => number(row.perKwh), "perKwh"],
    ["TDP", "W", (row) => number(row.tdp), "tdp"],
    ["price", "euro", (row) => number(row.euro), "euro"],
    ["price", "euro per hour", (row) => number(row.perHour), "perHour",
      (row) => row.date === null ? "" : `${row.date}, ${row.source}`],
    ["runs", "per euro", (row) => number(row.perEuro), "perEuro"],
  ];
  const MOST_ROWS = 50;
  const ALWAYS = ["text", "best", "speed"];
  const SORTS = { speed: -1, best: 1, gain: -1, roofline: -1, joule: 1, perKwh: -1, tdp: 1, perHour: 1, perEuro: -1 };

  const element = window.launchwiseElement;
  const heading = (title, unit, kind) => {
    const made = element("th", title, kind);
    made.scope = "col";
    if (unit) made.append(" ", element("span", unit, "unit"));
    return made;
  };
  const draw = (found, sort, most) => {
    const { rows } = found;
    const way = SORTS[sort];
    const last = (row) => row[sort] === null;
    rows.sort((a, b) => sort === "name" ? a.gpu.localeCompare(b.gpu)
      : last(a) - last(b) || way * (a[sort] - b[sort]) || a.gpu.localeCompare(b.gpu));
    const columns = COLUMNS.filter(([, , , key]) => ALWAYS.includes(key) || rows.some((row) => row[key] !== null));
    const table = element("table");
    const count = found.problems === 1 ? "One problem" : `The same ${found.problems} problems`;
    const caption = element("caption");
    caption.append(element("span", `${count} on every GPU; speed relative to ${found.beside}`));
    table.append(caption);
    const head = element("thead");
    const line = element("tr");
    line.append(heading("GPU", "", ""));
    for (const [title, unit, , key] of columns) {
      line.append(heading(title, title === "speed" ? `× ${found.beside}` : unit, key === "text" ? "" : "number"));
    }
    head.append(line);
    const body = element("tbody");
    const fastest = Math.max(...rows.map((row) => row.speed));
    for (const row of rows.slice(0, most)) {
      const made = element("tr", "", row.basis);
      const name = element("th", row.gpu);
      name.scope = "row";
      made.append(name);
      for (const [title, , text, key, more] of columns) {
        const cell = element("td", text(row), key === "text" ? "text" : "");
        const second = more?.(row);
        if (second) cell.append(element("span", second, "detail"));
        if (title === "speed") {
          const bar = element("span", "", "bar");
          bar.style.width = `${Math.max(2, 64 * row.speed / fastest).toFixed(0)}px`;
          // All bars begin at one place.
          const box = element("span", "", "bars");
          box.append(bar);
          cell.replaceChildren(box, element("span", text(row), "value"), ...cell.querySelectorAll(".detail"));
        }
        made.append(cell);
      }
      body.append(made);
    }
    table.append(head, body);
    const region = element("div", "", "scroll");
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "GPU comparison");
    region.append(table);
    return region;
  };

  const field = (name) => form.elements[name];
  const asked = () => ({
    gpus: field("gpus").value, beside: field("beside").value, sort: field("sort").value,
    problem: Object.fromEntries([...form.querySelectorAll(".parameters select")]
      .filter((one) => one.value).map((one) => [one.name.slice(2), one.value])),
  });
  const notice = (text) => element("p", text, "notice");
  // Of a thousand GPUs, show the first ones.
  const paging = (count, most) => {
    if (count <= most) return [];
    const line = element("p", `The first ${most} of ${count} GPUs. `, "note");
    for (const [words, next] of [[`Show ${MOST_ROWS} more`, most + MOST_ROWS], ["Show all", Infinity]]) {
      const button = element("button", words);
      button.type = "button";
      button.addEventListener("click", () => answer(false, next).then(() => box.querySelector("button, caption")?.scrollIntoView({ block: "nearest" })));
      line.append(button, " ");
    }
    return [line];
  };
  const answer = (remember, most = MOST_ROWS) => load(field("study").value).then((data) => {
    const question = asked();
    const found = compare(data, question);
    const made = [];
    if (found.rows.length) made.push(draw(found, question.sort, most), ...paging(found.rows.length, most));
    else made.push(notice("No problem was measured or predicted on all these GPUs. Show fewer GPUs or other problems."));
    if (found.rows.length && found.beside !== question.beside) {
      made.unshift(notice(`${question.beside} has none of these problems: speeds are relative to ${found.beside}.`));
    }
    if (found.without.length) made.push(element("p", `Without any of these problems: ${found.without.join(", ")}.`, "note"));
    box.replaceChildren(...made);
    window.launchwiseStops();
    if (!remember) return;
    const state = new URLSearchParams({ study: field("study").value, gpus: question.gpus, beside: question.beside, sort: question.sort, ...question.problem });
    history.replaceState(null, "", `#${form.id}?${state}`);
  }).catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));

  const build = (data, beside, problem) => {
    field("beside").replaceChildren(...data.gpus.map((gpu) => new Option(gpu.name)));
    const whole = data.gpus.find((gpu) => gpu.name === beside) ?? data.gpus[0];
    field("beside").value = whole.name;
    form.querySelector(".parameters").replaceChildren(...data.parameters.flatMap((one, k) => {
      const values = [...new Set(data.problems.map((each) => each[k]))]
        .sort((a, b) => typeof a === "number" ? a - b : String(a).localeCompare(b));
      if (values.length < 2) return [];
      const label = element("label", `${one.name} `);
      const select = element("select");
      select.name = `p-${one.name}`;
      select.append(new Option("all", ""), ...values.map((value) => new Option(String(value))));
      if (values.map(String).includes(problem[one.name])) select.value = problem[one.name];
      label.append(select);
      if (one.unit) label.append(element("span", ` ${one.unit}`, "unit"));
      return [label];
    }));
  };

  const open = () => {
    const [name, query] = location.hash.split("?");
    const state = new URLSearchParams(name === `#${form.id}` ? query ?? "" : "");
    const study = state.get("study") ?? first.study;
    const known = [...field("study").options].some((option) => option.value === study);
    field("study").value = known ? study : first.study;
    for (const own of ["gpus", "sort"]) {
      if ([...field(own).options].some((option) => option.value === state.get(own))) field(own).value = state.get(own);
    }
    const gone = (what) => box.prepend(notice(`This report holds no ${what}; the link is older.`));
    return load(field("study").value).then((data) => {
      const beside = state.get("beside") ?? first.beside;
      build(data, beside, Object.fromEntries(state));
      return answer(false).then(() => {
        if (!state.size) return;
        const strange = data.parameters.filter((one, k) => (
          state.has(one.name) && !data.problems.some((each) => String(each[k]) === state.get(one.name))));
        if (!known) gone(`study “${study}”`);
        else if (!data.gpus.some((gpu) => gpu.name === beside)) gone(`GPU “${beside}” for this study`);
        else if (strange.length) gone(`problem with ${strange.map((one) => `${one.name} = ${state.get(one.name)}`).join(", ")}`);
      });
    }).catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (event.target.name !== "study") { answer(true); return; }
    load(event.target.value).then((data) => { build(data, field("beside").value, {}); return answer(true); })
      .catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));
  });
  window.addEventListener("hashchange", open);
  window.launchwiseCompared = open();
})();
