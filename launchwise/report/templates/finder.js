(() => {
  "use strict";
  const page = window.launchwiseParsed(document.getElementById("page-data").textContent);
  const form = document.querySelector(".finder:not(.compare)");
  if (!form) return;
  const box = document.getElementById(`${form.id}-answer`);
  const { first, workloads, root } = page[form.id];
  const { PROBLEM, BASIS, CHOICE, TIME, LOW, HIGH, look, distance, problemOf } = window.launchwiseLookup;
  const { EQUAL, element, number, card } = window.launchwiseAnswer;

  // Trees as launchwise/report/site/rendering.py writes them. A whole number over a power of ten is the decimal, exactly.
  const trees = ({ cuts, ...texts }) => {
    const { features, places, leaves, shifts } = Object.fromEntries(
      Object.entries(texts).map(([name, each]) => [name, window.launchwiseWhole(each)]));
    let [at, inner, outer] = [0, 0, 0];
    const leaf = (twice, shift) => (twice % 2 ? -1 : 1) * Math.floor(twice / 2) / Number(`1e${shift}`);
    const node = () => {
      const feature = features[at++] - 1;
      if (feature < 0) return leaf(leaves[outer], shifts[outer++]);
      return { feature, threshold: cuts[feature][places[inner++]], left: node(), right: node() };
    };
    const found = [];
    while (at < features.length) found.push(node());
    return found;
  };
  const load = (study) => window.launchwiseRead(root, `data/${study}.js`);
  // A study's answers on one GPU; none where the study does not know it.
  const loadFor = (study, gpu) => load(study).then((data) => !data.gpus.includes(gpu) ? { ...data, entries: [] }
    : window.launchwiseRead(root, `data/answers/${study}/${gpu}.js`).then(({ entries, judge }) => ({
      ...data, judge: judge && trees(judge), entries: entries.map(([place, problem, ...rest]) => [place, data.problems[problem], ...rest]),
    })));

  const broken = (data, asked) => {
    const names = problemOf(data, asked);
    return data.limits.find(([, tree]) => !window.launchwiseValue(tree, names));
  };
  window.launchwiseLook = (study, gpu, asked) => loadFor(study, gpu).then((data) => {
    const limit = broken(data, asked);
    if (limit) return { broken: limit[0] };
    const found = look(data, gpu, asked);
    return { ...found, configuration: Object.fromEntries(data.configurations[found.entry[CHOICE]].values) };
  });

  // Gain over a configuration of the reader's: rows of the sweep at the nearest measured problem.
  const ownSpeed = (data, entry, asked) => {
    const { rows } = data;
    if (!rows) return "This GPU has no measurements, so the gain over your configuration is unknown.";
    const mine = form.elements.own?.value;
    const known = rows.problems.map((texts) => texts.map((text, k) => (
      typeof data.parameters[k].values[0] === "number" ? Number(text) : text)));
    const distances = known.map((problem) => distance(asked, problem));
    const place = distances.indexOf(Math.min(...distances));
    const where = data.parameters.map((one, k) => `${one.name} = ${window.launchwiseShown(known[place][k])}`).join(", ");
    const times = rows.times[place];
    const of = (name) => times[rows.names.indexOf(name)] ?? -1;
    const own = of(mine);
    if (own < 0) return `${mine} has no time at ${where}.`;
    const words = data.configurations[entry[CHOICE]].words;
    const answer = of(words);
    if (answer < 0) return `This answer has no time at ${where}; the fastest there is ${number(Math.exp(own / rows.steps))} times as fast as ${mine}.`;
    const ratio = Math.exp((own - answer) / rows.steps);
    const said = words === mine ? "This is your configuration."
      : Math.abs(Math.log(ratio)) <= Math.log(EQUAL) ? `Within ${number(100 * (EQUAL - 1), 1)} % of ${mine}: ${number(ratio)} times its speed`
        : `${number(ratio)} times the speed of ${mine}`;
    return words === mine ? said : `${said} at ${where} (single rows of the sweep, not pairs).`;
  };
  // The list of measured configurations is shown only for this choice.
  const listOwn = (data, wanted) => {
    const place = form.querySelector(".mine");
    if (form.elements.beside.value !== "own" || !data.rows) { place.replaceChildren(); return; }
    const chosen = wanted ?? form.elements.own?.value;
    const label = element("label", "mine ");
    const select = element("select");
    select.name = "own";
    select.append(...[...data.rows.names].sort((one, other) => one.localeCompare(other, "en", { numeric: true })).map((name) => new Option(name)));
    const start = data.rows.names[data.rows.baseline ?? 0];
    select.value = data.rows.names.includes(chosen) ? chosen : start;
    label.append(select);
    if (form.elements.own && [...form.elements.own.options].length === select.options.length
      && [...select.options].every((option, k) => form.elements.own.options[k].value === option.value)) {
      form.elements.own.value = select.value;
    } else place.replaceChildren(label);
  };
  const withRows = (data) => form.elements.beside.value !== "own" ? data
    : data.entries.some((entry) => data.bases[entry[BASIS]] !== data.bases.at(-1))
      ? window.launchwiseReadRows(root, form.elements.study.value, form.elements.gpu.value).then((rows) => ({ ...data, rows })) : data;
  const fields = () => [...form.querySelectorAll(".parameters [name]")];
  const asked = (data) => fields().map((field, k) => (
    typeof data.parameters[k].values[0] === "string" ? field.value : Number(field.value)
  ));
  let built = null;
  const build = (data, gpu, problem) => {
    built = form.elements.study.value;
    form.elements.gpu.replaceChildren(...data.gpus.map((name) => new Option(name)));
    form.elements.gpu.value = data.gpus.includes(gpu) ? gpu : data.gpus[0];
    const middle = problem ?? data.first;
    form.querySelector(".parameters").replaceChildren(...data.parameters.map((one, k) => {
      const label = element("label", `${one.name} `);
      let field;
      if (one.free && typeof one.values[0] === "number") {
        field = element("input");
        field.type = "number";
        field.min = 1;
        field.required = true;
        field.value = middle[k];
      } else {
        field = element("select");
        for (const value of one.values) field.append(new Option(String(value)));
        field.value = middle[k];
      }
      field.name = `p-${one.name}`;
      label.append(field);
      if (one.unit && one.unit !== one.name) label.append(element("span", ` ${one.unit}`, "unit"));
      return label;
    }));
  };

  // The fastest answer to this very problem by another study of the same workload: another one, and surely faster.
  const fasterKernel = async (data, entry, problem) => {
    const mine = form.elements.study.value;
    const gpu = form.elements.gpu.value;
    const own = data.configurations[entry[CHOICE]].words;
    let fastest = null;
    for (const [study, workload] of Object.entries(workloads)) {
      if (study === mine || workload !== workloads[mine]) continue;
      const other = await loadFor(study, gpu);
      const found = broken(other, problem) ? null : look(other, gpu, problem);
      if (!found || found.entry[HIGH] === null || found.entry[HIGH] >= entry[LOW]) continue;
      const [time, { words }] = [found.entry[TIME], other.configurations[found.entry[CHOICE]]];
      if (words !== own && time < (fastest?.time ?? Infinity)) fastest = { study, time, title: other.title, words, basis: other.bases[found.entry[BASIS]] };
    }
    return fastest;
  };
  const context = (data, problem) => ({
    options: form.dataset.options ? form.dataset.options.split("\n") : [],
    study: form.elements.study.value, gpu: form.elements.gpu.value, beside: form.elements.beside.value,
    root,
    ownSpeed: (entry) => ownSpeed(data, entry, problem),
    faster: (entry) => fasterKernel(data, entry, problem),
  });
  const answer = (remember, own) => loadFor(form.elements.study.value, form.elements.gpu.value).then(withRows).then((data) => {
    listOwn(data, own);
    const problem = asked(data);
    const wrong = data.parameters.find((one, k) => typeof problem[k] === "number" && !(Number.isInteger(problem[k]) && problem[k] >= 1));
    if (wrong) {
      box.replaceChildren(element("p", `${wrong.name} must be a whole number of 1 or more.`, "notice"));
      return;
    }
    const limit = broken(data, problem);
    box.replaceChildren(...(limit ? [element("p", `No configuration may run this problem: ${limit[0]} does not hold.`, "notice")]
      : card(data, look(data, form.elements.gpu.value, problem), problem, context(data, problem))));
    if (!remember) return;
    const state = new URLSearchParams({ study: form.elements.study.value, gpu: form.elements.gpu.value });
    data.parameters.forEach((one, k) => state.set(one.name, problem[k]));
    state.set("beside", form.elements.beside.value);
    if (form.elements.own) state.set("own", form.elements.own.value);
    window.launchwiseAddress(`${form.id}?${state}`);
  }).catch((error) => {
    box.replaceChildren(element("p", `The answers cannot be shown: ${error.message}.`, "notice"));
  });

  const open = () => {
    const [name, given] = location.hash.split("?");
    const query = name === `#${form.id}` ? given : undefined;
    const state = new URLSearchParams(query ?? location.search);
    const study = state.get("study") ?? first.study;
    const known = [...form.elements.study.options].some((option) => option.value === study);
    const gone = (what) => box.prepend(element("p", `This report holds no ${what}; the link is older.`, "notice"));
    form.elements.study.value = known ? study : first.study;
    if (["usual", "baseline", "own"].includes(state.get("beside"))) form.elements.beside.value = state.get("beside");
    return load(form.elements.study.value).then((data) => {
      const given = data.parameters.map((one) => {
        const text = state.get(one.name);
        if (text === null) return null;
        if (typeof one.values[0] === "string" || !one.free) return one.values.find((value) => String(value) === text) ?? null;
        return Number(text) >= 1 ? Number(text) : null;
      });
      const whole = given.every((value) => value !== null);
      const own = form.elements.study.value === first.study
        ? data.parameters.map((one) => first.problem[one.name]) : null;
      const gpu = query === undefined && !data.gpus.includes(state.get("gpu")) ? first.gpu : state.get("gpu") ?? first.gpu;
      build(data, gpu, whole ? given : own);
      return answer(false, state.get("own")).then(() => {
        if (query === undefined) return;
        if (!known) gone(`study “${study}”`);
        else if (!data.gpus.includes(gpu)) gone(`GPU “${gpu}” for this study`);
        else if (!whole) gone("problem with these values");
        else if (state.has("own") && form.elements.own?.value !== state.get("own")) gone(`configuration “${state.get("own")}”`);
      });
    }).catch((error) => {
      box.replaceChildren(element("p", `The answers cannot be shown: ${error.message}.`, "notice"));
    });
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  // One after the other: what was asked last is what stands.
  const next = (step) => { window.launchwiseOpened = Promise.resolve(window.launchwiseOpened).then(step); };
  form.addEventListener("change", ({ target }) => next(() => {
    if (target.name !== "study") return answer(true);
    return load(target.value).then((data) => {
      // The problem stays as it is where another study of the same kernel is asked.
      const given = new Map(fields().map((field) => [field.name.slice(2), field.value]));
      const kept = data.parameters.map((one) => typeof one.values[0] === "string" ? given.get(one.name) : Number(given.get(one.name)));
      const same = workloads[target.value] === workloads[built] && data.parameters.every((one, k) => one.free || one.values.includes(kept[k]));
      build(data, form.elements.gpu.value, same ? kept : null);
      return answer(true);
    })
      .catch((error) => box.replaceChildren(element("p", `The answers cannot be shown: ${error.message}.`, "notice")));
  }));
  window.addEventListener("hashchange", () => next(open));
  next(open);
})();
