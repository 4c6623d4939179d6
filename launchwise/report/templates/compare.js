(() => {
  "use strict";
  const page = window.launchwiseParsed(document.getElementById("page-data").textContent);
  const form = document.querySelector(".compare");
  if (!form) return;
  const box = document.getElementById(`${form.id}-answer`);
  const { first, tdp, prices } = page[form.id];
  const element = window.launchwiseElement;
  const [GPU, PROBLEM, BEST, ERROR, , LEAST, GAIN, , , JOULE, BASELINE_JOULE] = [...Array(11).keys()];

  const load = (study) => window.launchwiseRead("", `data/${study}.gpus.js`);

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
  // Of chosen problems, as the report computes the ratio of all of them.
  const meanRatio = (own, other) => {
    const logs = own.map((row, k) => Math.log(other[k][BEST] / row[BEST]));
    const count = logs.length;
    const middle = total(logs) / count;
    if (count > 1 && count < FEWEST) return [count, Math.exp(middle), null, null];
    // Of one level for all problems: another visit moves them together.
    const visits = total(own.map((row, k) => row[ERROR] ** 2 + other[k][ERROR] ** 2)) / count;
    const apart = count > 1 ? total(logs.map((log) => (log - middle) ** 2)) / (count - 1) / count : 0;
    const width = Math.hypot(student(count > 1 ? count - 1 : Infinity) * Math.sqrt(apart), student(Infinity) * Math.sqrt(visits));
    return [count, ...[middle, middle - width, middle + width].map(Math.exp)];
  };

  // Which GPUs are compared: names and groups, as the address holds them.
  const GROUPS = {
    whole: ["whole"], slices: ["slice"], predicted: ["predicted"], measured: ["whole", "slice"], all: ["whole", "slice", "predicted"],
  };
  const chosen = (data, words) => data.gpus.filter((gpu) => (
    words.includes(gpu.name) || words.some((word) => GROUPS[word]?.includes(gpu.kind))));
  // At first the whole cards that were measured; with a single one more of them, so that there is something to compare.
  const firstOf = (data) => ["whole", "measured", "all"].map((word) => [word]).find((words) => chosen(data, words).length > 1) ?? ["all"];

  // Problems of which the energy is compared: all whole cards that recorded any have it.
  const withEnergy = (having, common) => {
    const has = (gpu) => (place) => gpu.rows.get(place)[JOULE] !== null;
    const some = having.filter((gpu) => common.some(has(gpu)));
    const whole = some.filter((gpu) => gpu.kind === "whole");
    const deciding = whole.length ? whole : some;
    return deciding.length ? common.filter((place) => deciding.every((gpu) => has(gpu)(place))) : [];
  };

  const compare = (data, asked) => {
    const fits = data.problems.map((problem) => data.parameters.every((one, k) => (
      asked.problem[one.name] === undefined || String(problem[k]) === asked.problem[one.name])));
    const shown = chosen(data, asked.gpus).map((gpu) => ({ ...gpu, place: data.gpus.indexOf(gpu), rows: new Map() }));
    const of = new Map(shown.map((gpu) => [gpu.place, gpu]));
    for (const entry of data.entries) {
      if (fits[entry[PROBLEM]] && of.has(entry[GPU])) of.get(entry[GPU]).rows.set(entry[PROBLEM], entry);
    }
    const without = shown.filter((gpu) => !gpu.rows.size).map((gpu) => gpu.name);
    const having = shown.filter((gpu) => gpu.rows.size);
    const common = data.problems.map((_, place) => place)
      .filter((place) => having.every((gpu) => gpu.rows.has(place)));
    const energies = withEnergy(having, common);
    const above = new Set(data.above.map(String));
    const ratios_ = new Map(data.ratios.map(([gpu, other, ...rest]) => [`${gpu},${other}`, rest]));
    const chosenOnly = fits.includes(false);
    const reference = having.find((gpu) => gpu.name === asked.beside) ?? having[0];
    const rows = !common.length ? [] : having.map((gpu) => {
      const own = common.map((place) => gpu.rows.get(place));
      const column = (rows_, at) => rows_.map((row) => row[at]);
      // The ratio that every page shows, unless problems were chosen.
      const told = ratios_.get(`${gpu.place},${reference.place}`);
      const [predicted, ...all] = told ?? [false, null, gpu === reference ? 1 : null, null, null];
      const both = [...gpu.rows.keys()].filter((place) => reference.rows.has(place));
      const ofChosen = () => meanRatio(both.map((place) => gpu.rows.get(place)), both.map((place) => reference.rows.get(place)));
      const [count, speed, low, high] = !told || !chosenOnly ? all : ofChosen();
      const best = mean(column(own, BEST));
      const gains = column(own, GAIN);
      const spent = energies.map((place) => gpu.rows.get(place));
      const joule = mean(column(spent, JOULE));
      const [euro, perHour, date, source] = prices[gpu.name] ?? [null, null, null, null];
      const [own_, others_] = [gpu.name, reference.name].map((name) => asked.prices?.[name] ?? prices[name]?.[1] ?? null);
      const price = own_ && others_ ? own_ / others_ : null;
      const over = (value) => price === null || value === null ? null : price / value;
      return {
        gpu: gpu.name, basis: gpu.basis, kind: gpu.kind, best,
        speed, limits: predicted ? [null, null] : [low, high], count,
        within: predicted ? data.within : "",
        cost: over(speed), costLimits: predicted ? [null, null] : [over(high), over(low)],
        gain: mean(gains),
        gainLimits: own.length === 1 ? own[0].slice(GAIN + 1, GAIN + 3) : overProblems(gains),
        bound: mean(ratios(column(own, LEAST), column(own, BEST))),
        joule, jouleBeside: mean(ratios(column(spent, JOULE), column(spent, BASELINE_JOULE))),
        above: joule === null ? 0 : energies.filter((place) => above.has(`${gpu.place},${place}`)).length,
        tdp: tdp[gpu.name] ?? null, euro, perHour, date, source,
        perEuro: perHour === null ? null : 3.6e6 / perHour / best,
        perKwh: joule === null ? null : 3.6e6 / joule,
      };
    });
    const recorded = having.filter((gpu) => common.some((place) => gpu.rows.get(place)[JOULE] !== null)).map((gpu) => gpu.name);
    return { rows, without, problems: common.length, energies: energies.length, recorded, chosenOnly, beside: reference?.name };
  };
  window.launchwiseCompare = (study, asked) => load(study).then((data) => compare(data, { ...asked, gpus: asked.gpus.split(",") }));

  const number = (value, digits = 3) => value === null ? "–"
    : value < 1e6 ? Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false })
      : Number(value.toPrecision(digits)).toLocaleString("en").replaceAll(",", "\u202f");
  // Digits enough to tell a number from its limits.
  const enough = (value, [low, high], digits) => value === null || low === null || high === null ? digits
    : window.launchwiseApart([low, value, high], digits);
  const digits = (row) => enough(row.speed, row.limits, row.basis === "measured" ? 3 : 2);
  const ofGain = (row) => enough(row.gain, row.gainLimits, 3);
  const outcome = ([low, high]) => ({ tie: ", a tie", undecided: ", undecided" })[window.launchwiseOutcome(low, high)] ?? "";
  const between = ([low, high], digits_, percent) => low === null || high === null ? ""
    : `${number(low, digits_)} to ${number(high, digits_)} (${percent} %)${outcome([low, high])}`;
  const energyDetail = (row) => [
    row.jouleBeside === null ? "" : `${number(row.jouleBeside)} × baseline`,
    row.above ? `sustained running slower than the time at ${row.above === 1 ? "one problem" : `${row.above} problems`}` : "",
  ].filter(Boolean).join("; ");
  // Title, unit, text, field, second line.
  const COLUMNS = [
    // First: phones show two columns.
    ["speed", "", (row) => number(row.speed, digits(row)), "speed", (row) => row.count === null ? ""
      : [row.within, between(row.limits, digits(row), 95), `${row.count} problem${row.count === 1 ? "" : "s"}`].filter(Boolean).join(", ")],
    ["basis", "", (row) => row.basis, "text"],
    ["best time", "ms", (row) => number(row.best, row.basis === "measured" ? 4 : 2), "best"],
    ["gain in pairs", "× usual", (row) => number(row.gain, ofGain(row)), "gain", (row) => between(row.gainLimits, ofGain(row), 95)],
    ["physical limit", "% reached", (row) => number(row.bound === null ? null : 100 * row.bound, 2), "bound"],
    ["energy", "J per run", (row) => number(row.joule), "joule", energyDetail],
    ["runs", "per kWh", (row) => number(row.perKwh), "perKwh"],
    ["TDP", "W", (row) => number(row.tdp), "tdp"],
    ["price", "euro", (row) => number(row.euro), "euro"],
    ["price", "euro per hour", (row) => number(row.perHour), "perHour",
      (row) => row.date === null ? "" : `${row.date}, ${row.source}`],
    ["cost", "", (row) => number(row.cost, enough(row.cost, row.costLimits, 3)), "cost",
      (row) => (row.cost === null ? "" : row.within) || between(row.costLimits, enough(row.cost, row.costLimits, 3), 95)],
    ["runs", "per euro", (row) => number(row.perEuro), "perEuro"],
  ];
  // Prices at which two GPUs cost the same per run.
  const equalCost = ({ rows, beside }) => {
    const others = rows.filter((row) => row.gpu !== beside && row.kind !== "slice" && row.speed !== null).slice(0, MOST_PRICES);
    if (!others.length || rows.some((row) => row.gpu === beside && row.kind === "slice")) return [];
    const told = others.map((row) => {
      const [low, high] = row.limits;
      const said = row.within || (low === null ? "no interval" : `${number(low, digits(row))} to ${number(high, digits(row))}`);
      return `${row.gpu} at ${number(row.speed, digits(row))} (${said})`;
    });
    return [element("p", `Equal cost per run, as price per hour relative to ${beside}: ${told.join(", ")}. One that costs less than the lower limit is surely the cheaper one, above the upper limit the dearer; between them it is undecided.`, "note")];
  };
  // What a reader must know of what is shown.
  const SLICES = "A slice is a green context: some SMs of a card that did nothing else, with its whole memory and L2. Slices that run side by side share these, and were not measured: neither their throughput nor the cost of a run follows from these times.";
  const ENERGY = "Energy is of sustained running, times are of single launches: where energy divided by time is above the card's power limit, sustained running is slower than the time shown.";
  const LIMIT = "Physical limit: the time of a problem's least bytes at the GPU's measured bandwidth, or of its FLOP at the measured rate, whichever is longer.";
  const ofKinds = (data, rows) => [["slice", SLICES], ["predicted", `Hatched rows are predicted from datasheets. ${data.predicted}`]]
    .filter(([kind]) => rows.some((row) => row.kind === kind))
    .concat([["bound", LIMIT], ["joule", ENERGY]].filter(([figure]) => rows.some((row) => row[figure] !== null)))
    .map(([, words]) => element("p", words, "note"));
  const MOST_ROWS = 50;
  const ALWAYS = ["text", "best", "speed"];
  const SORTS = { speed: -1, cost: 1, best: 1, gain: -1, bound: -1, joule: 1, perKwh: -1, tdp: 1, perHour: 1, perEuro: -1 };

  const heading = (title, unit, kind) => {
    const made = element("th", title, kind);
    made.scope = "col";
    if (unit) made.append(" ", element("span", unit, "unit"));
    return made;
  };
  const draw = (found, sort, most) => {
    const { rows } = found;
    const way = SORTS[sort];
    const few = found.energies < found.problems ? `; ${found.energies} of ${found.problems} problems` : "";
    const last = (row) => row[sort] === null;
    rows.sort((a, b) => sort === "name" ? a.gpu.localeCompare(b.gpu)
      : last(a) - last(b) || way * (a[sort] - b[sort]) || a.gpu.localeCompare(b.gpu));
    const columns = COLUMNS.filter(([, , , key]) => ALWAYS.includes(key) || rows.some((row) => row[key] !== null));
    const table = element("table");
    const count = found.problems === 1 ? "one problem" : `the same ${found.problems} problems`;
    const speed = `peed relative to ${found.beside}`;
    // A ratio of two GPUs is over all problems of both: of three GPUs it may hold more than their other figures.
    const apart = rows.some((row) => row.gpu !== found.beside && row.count !== null && row.count !== found.problems);
    const of = found.chosenOnly ? "the chosen problems of both GPUs" : "all problems of both GPUs";
    const said = apart ? `S${speed} over ${of}, whose number it states; other columns over ${count} on every GPU` : `${count[0].toUpperCase()}${count.slice(1)} on every GPU; s${speed}`;
    const means = found.problems === 1 ? "" : "; geometric means";
    const caption = element("caption");
    caption.append(element("span", `${said}${means}`));
    table.append(caption);
    const head = element("thead");
    const line = element("tr");
    line.append(heading("GPU", "", ""));
    for (const [title, unit, , key] of columns) {
      line.append(heading(title, title === "speed" ? `× ${found.beside}` : title === "cost" ? `of a run, × ${found.beside}` : ["joule", "perKwh"].includes(key) ? unit + few : unit, key === "text" ? "" : "number"));
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
        if (second) {
          const detail = element("span", "", "detail");
          detail.append(second);
          cell.append(detail);
        }
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
  const ticked = () => [...form.querySelectorAll(".gpus input[name]:checked")].map((one) => one.value);
  // A whole group as one word.
  const words = (data) => Object.entries(GROUPS).slice(0, 3).flatMap(([word, [kind]]) => {
    const names = data.gpus.filter((gpu) => gpu.kind === kind).map((gpu) => gpu.name);
    const own = names.filter((name) => form.elements[`gpu-${name}`].checked);
    return own.length > 1 && own.length === names.length ? [word] : own;
  });
  // Prices that a reader gives, by GPU.
  const given = {};
  const priced = () => {
    const place = form.querySelector(".prices");
    const fields = ticked().map((name) => {
      const label = element("label", `${name} per hour `);
      const input = element("input");
      Object.assign(input, { type: "number", min: 0, step: "any", value: given[name] ?? prices[name]?.[1] ?? "" });
      input.addEventListener("change", () => { given[name] = Number(input.value) || null; });
      label.append(input);
      return label;
    });
    if (fields.length <= MOST_PRICES) { place.replaceChildren("prices: ", ...fields); return; }
    // Many fields would push the table off the screen.
    const fold = element("details");
    fold.open = Boolean(place.querySelector("details[open]"));
    fold.append(element("summary", `prices of ${fields.length} GPUs`), ...fields);
    place.replaceChildren(fold);
  };
  const asked = () => ({
    prices: given,
    gpus: ticked(), beside: field("beside").value, sort: field("sort").value,
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
  let kept = [];
  const titleOf = (sort) => [...field("sort").options].find((option) => option.value === sort).text;
  const answer = (remember, most = MOST_ROWS) => load(field("study").value).then((data) => {
    const question = asked();
    const found = compare(data, question);
    const made = [];
    const known = question.sort === "name" || found.rows.some((row) => row[question.sort] !== null);
    if (found.rows.length) made.push(draw(found, known ? question.sort : "speed", most), ...paging(found.rows.length, most), ...equalCost(found), ...ofKinds(data, found.rows));
    else {
      made.push(notice(question.gpus.length ? "No problem was measured or predicted on all these GPUs. Choose fewer GPUs or other problems."
        : "Choose the GPUs that are to be compared."));
    }
    if (found.rows.length && found.beside !== question.beside) {
      made.unshift(notice(`${question.beside} has none of these problems: speeds are relative to ${found.beside}.`));
    }
    if (found.rows.length && !known) {
      const why = question.sort === "joule" && found.recorded.length
        ? `${found.recorded.join(", ")} recorded the energy of other problems each` : `nothing is known of ${titleOf(question.sort)} on these GPUs`;
      made.unshift(notice(`Sorted by speed: ${why}.`));
    }
    if (found.without.length) made.push(element("p", `Without any of these problems: ${found.without.join(", ")}.`, "note"));
    box.replaceChildren(...made);
    window.launchwiseStops();
    kept = words(data);
    if (!remember) return;
    const state = new URLSearchParams({
      study: field("study").value, gpus: kept.join(","), beside: question.beside, sort: question.sort, ...question.problem });
    window.launchwiseAddress(`${form.id}?${state}`);
  }).catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));

  const MOST_BOXES = 24;
  const MOST_PRICES = 4;
  const TITLES = { whole: "whole cards", slice: "slices (sm16: 16 of the SMs)", predicted: "predicted" };
  // Boxes of whole groups follow those of their GPUs; the GPU that speeds are relative to is one of the chosen.
  const listed = () => {
    for (const every of form.querySelectorAll(".gpus .every")) {
      const own = [...every.closest("fieldset").querySelectorAll("input[name]")];
      const count = own.filter((one) => one.checked).length;
      every.checked = count === own.length;
      every.indeterminate = count > 0 && count < own.length;
    }
    const before = field("beside").value;
    const names = ticked();
    field("beside").replaceChildren(...names.map((name) => new Option(name)));
    if (names.includes(before)) field("beside").value = before;
    priced();
  };
  const tick = (title, kind, checked) => {
    const label = element("label");
    const made = element("input", "", kind);
    made.type = "checkbox";
    made.checked = checked;
    label.append(made, ` ${title}`);
    return [label, made];
  };
  const group = (data, kind, gpus) => {
    const own = data.gpus.filter((gpu) => gpu.kind === kind);
    if (!own.length) return [];
    const made = element("fieldset");
    const title = element("legend", own.length > 1 ? "" : TITLES[kind]);
    if (own.length > 1) title.append(tick(TITLES[kind], "every", false)[0]);
    const list = own.length > MOST_BOXES ? element("details") : made;
    made.append(title);
    if (list !== made) {
      list.append(element("summary", `${own.length} GPUs`));
      made.append(list);
    }
    for (const gpu of own) {
      const [label, one] = tick(gpu.name, "", gpus.includes(gpu));
      one.name = `gpu-${gpu.name}`;
      one.value = gpu.name;
      list.append(label);
    }
    return [made];
  };

  const build = (data, asked_, beside, problem) => {
    const known = chosen(data, asked_).length ? asked_ : firstOf(data);
    const gpus = chosen(data, [...known, beside]);
    form.querySelector(".gpus").replaceChildren(...Object.keys(TITLES).flatMap((kind) => group(data, kind, gpus)));
    field("beside").replaceChildren(new Option(beside));
    listed();
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
      if (one.unit && one.unit !== one.name) label.append(element("span", ` ${one.unit}`, "unit"));
      return [label];
    }));
  };

  const open = () => {
    const [name, query] = location.hash.split("?");
    const state = new URLSearchParams(name === `#${form.id}` ? query ?? "" : "");
    // What another page asked is taken as far as it is known here.
    const carried = new URLSearchParams(name === `#${form.id}` ? "" : location.search);
    const offered = [...field("study").options].some((option) => option.value === carried.get("study"));
    const study = state.get("study") ?? (offered ? carried.get("study") : first.study);
    const known = [...field("study").options].some((option) => option.value === study);
    field("study").value = known ? study : first.study;
    const sort = state.get("sort") ?? "speed";
    const sorts = [...field("sort").options].map((option) => option.value);
    field("sort").value = sorts.includes(sort) ? sort : "speed";
    const gone = (what) => box.prepend(notice(`This report holds no ${what}; the link is older.`));
    return load(field("study").value).then((data) => {
      const beside = state.get("beside") ?? first.beside;
      const gpus = state.get("gpus")?.split(",") ?? firstOf(data);
      const unknown = [...gpus, ...state.has("beside") ? [beside] : []].filter((one) => !GROUPS[one] && !data.gpus.some((gpu) => gpu.name === one));
      build(data, gpus, beside, Object.fromEntries(state.size || !offered ? state : carried));
      return answer(false).then(() => {
        if (!state.size) return;
        const strange = data.parameters.filter((one, k) => (
          state.has(one.name) && !data.problems.some((each) => String(each[k]) === state.get(one.name))));
        if (!known) gone(`study “${study}”`);
        else if (unknown.length) gone(`GPU “${unknown[0]}” for this study`);
        else if (!sorts.includes(sort)) gone(`order “${sort}”`);
        else if (strange.length) gone(`problem with ${strange.map((one) => `${one.name} = ${state.get(one.name)}`).join(", ")}`);
      });
    }).catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", ({ target }) => {
    if (target.name === "study") {
      // The same groups and GPUs, as far as this kernel ran on them.
      load(target.value).then((data) => {
        build(data, chosen(data, kept).length > 1 ? kept : firstOf(data), field("beside").value, {});
        return answer(true);
      }).catch((error) => box.replaceChildren(notice(`The comparison cannot be shown: ${error.message}.`)));
      return;
    }
    if (target.className === "every") {
      for (const one of target.closest("fieldset").querySelectorAll("input[name]")) one.checked = target.checked;
    }
    if (target.type === "checkbox") listed();
    answer(true);
  });
  window.addEventListener("hashchange", open);
  window.launchwiseCompared = open();
})();
