(() => {
  "use strict";
  const { GPU, PROBLEM, BASIS, CHOICE, USUAL, TIME, LOW, HIGH, GAIN, BASELINE, PAIRED, BLIND, OTHERS, ALIKE, UNSURE, distance, problemOf } = window.launchwiseLookup;
  const value = window.launchwiseValue;
  const EQUAL = window.launchwiseEqual;
  const outcome = window.launchwiseOutcome;
  // What an interval that leaves the order open says.
  const open = (low, high) => ({ tie: "tie", undecided: "undecided" })[outcome(low, high)] ?? "";

  const number = window.launchwiseNumber;
  const apart = window.launchwiseApart;
  const element = window.launchwiseElement;
  // A number, and its limits in brackets, with digits enough to tell them apart.
  const within = (middle, low, high, digits, percent, after = "") => {
    if (low === null || high === null) return [number(middle, digits) + after, ""];
    const enough = apart([low, middle, high], digits);
    return [number(middle, enough) + after, ` (${number(low, enough)} to ${number(high, enough)}, ${percent} %)`];
  };
  // Digits of a number that its limits leave sure, four at most.
  const sure = (middle, low, high) => low === null || high === null ? 4
    : Math.min(4, Math.max(2, 2 + Math.floor(-Math.log10(Math.max(high - low, Number.MIN_VALUE) / middle))));
  const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;
  const linked = (before, words, href, after = "") => {
    const made = element("p", before);
    const link = element("a", words);
    link.href = href;
    made.append(link, after);
    return made;
  };

  // Launches of a configuration for a problem: none where host code decides; a part that the page cannot compute is null.
  const namesOf = (data, values, asked) => ({ ...data.neutral, ...Object.fromEntries(values),
    ...Object.fromEntries(data.parameters.map((one, k) => [one.name, asked[k]])) });
  const kernelOf = (kernel, names) => {
    if (!Array.isArray(kernel)) return kernel || names.variant;
    const [name, ...parts] = kernel;
    return `${name}<${parts.map((tree) => value(tree, names)).join(", ")}>`;
  };
  const launchesOf = (data, values, asked) => {
    const names = namesOf(data, values, asked);
    const of = (tree) => tree === null ? null : Number(value(tree, names));
    return (data.launches[names.variant] ?? []).map((one) => ({
      kernel: kernelOf(one.kernel, names), block: one.block.map(of), grid: one.grid.map(of), shared: of(one.shared),
    }));
  };
  const known = (sizes) => sizes.every((size) => size !== null);

  const literal = window.launchwiseLiteral;
  const word = window.launchwiseWord;
  const capitals = (text) => text.replace(/\W/g, "_").toUpperCase();
  // Macros that kernels are compiled with: host code has names of its own, and they are in capitals.
  const macrosOf = (data, values, asked) => {
    const names = namesOf(data, values, asked);
    const own = values.map(([name, value_]) => {
      const listed = name === "variant" || data.hosted;
      if (typeof value_ === "string" && listed) return [`${capitals(name)}_${capitals(value_)}`, 1];
      return [data.hosted ? capitals(name) : name, value_];
    });
    return [...own, ...data.macros.map(([name, tree]) => [name, value(tree, names)])];
  };
  const list = (sizes) => sizes.map((size) => size ?? "?").join(", ");
  const comment = (sign, launches) => `${sign} ${launches.length ? "?: not known to this page" : "launch: decided by the host program"}`;
  const lacks = (launches, hosted) => (hosted && !launches.length) || launches.some((one) => !known(one.block) || !known(one.grid) || one.shared === null);
  const options = (macros) => macros.map(([name, value_]) => literal(`-D${name}=${value_}`)).join(", ");
  const forms = {
    values: ["values", (values) => values.map((pair) => pair.join("=")).join(" ")],
    launch: ["launch", (values, launches) => launches.map((one) => (
      `${one.kernel}: block ${list(one.block)}; grid ${list(one.grid)}; dynamic shared memory ${one.shared ?? "?"} bytes`)).join("\n")],
    macros: ["macros", (values, launches, macros) => macros.map(([name, value_]) => `#define ${name} ${value_}`).join("\n")],
    cpp: ["C++", (values, launches) => [
      ...values.map(([name, value_]) => typeof value_ === "string" ? `constexpr const char* ${name} = ${literal(value_)};` : `constexpr int ${name} = ${value_};`),
      ...launches.map((one) => `${one.kernel}<<<dim3(${list(one.grid)}), dim3(${list(one.block)}), ${one.shared ?? "?"}>>>(...);`),
    ].join("\n")],
    pycuda: ["PyCUDA", (values, launches, macros) => [
      `module = SourceModule(source, options=[${options(macros)}])`,
      ...launches.map((one) => `module.get_function(${literal(one.kernel)})(*arguments, block=(${list(one.block)}), grid=(${list(one.grid)}), shared=${one.shared ?? "?"})`),
    ].join("\n")],
    cupy: ["CuPy", (values, launches, macros) => [
      `module = cupy.RawModule(code=source, options=(${options(macros)},))`,
      ...launches.map((one) => `module.get_function(${literal(one.kernel)})((${list(one.grid)}), (${list(one.block)}), arguments, shared_mem=${one.shared ?? "?"})`),
    ].join("\n")],
    command: ["command line", (values, launches, macros, command) => command],
    json: ["JSON", (values, launches) => JSON.stringify({
      configuration: Object.fromEntries(values),
      launches: launches.map(({ kernel, block, grid, shared }) => ({ kernel, block, grid, shared_bytes: shared })),
    })],
  };
  const signs = { launch: "#", cpp: "//", pycuda: "#", cupy: "#" };
  let shape = "values";
  const taking = (values, launches, macros, hosted, command) => {
    const made = element("div", "", "take");
    const label = element("label", "take it as ");
    const choice = element("select");
    for (const [name, [title]] of Object.entries(forms)) choice.append(new Option(title, name));
    choice.value = shape;
    label.append(choice);
    const text = element("textarea");
    text.readOnly = true;
    text.wrap = "off";
    text.setAttribute("aria-label", "configuration to copy");
    const fill = () => {
      const lines = [forms[shape][1](values, launches, macros, command)];
      if (signs[shape] && lacks(launches, hosted)) lines.push(comment(signs[shape], launches));
      text.value = lines.filter((line) => line).join("\n");
      text.rows = text.value.split("\n").length;
    };
    choice.addEventListener("change", () => { shape = choice.value; fill(); });
    const copy = element("button", "copy");
    copy.type = "button";
    copy.addEventListener("click", () => {
      text.select();
      // Pages opened from files have no clipboard of the newer kind.
      copy.textContent = document.execCommand("copy") ? "copied" : "press Ctrl+C";
    });
    fill();
    made.append(label, text, copy);
    return made;
  };

  // What a model says without limits may be off by any factor.
  const unsure = (data, entry, low) => low === null && entry[BASIS] !== data.measured ? ", limits not known" : "";
  const beside = { usual: [GAIN, "the usual choice"], baseline: [BASELINE, "the baseline"] };
  const speed = (data, entry, context) => {
    if (context.beside === "own") return context.ownSpeed(entry);
    const [place, name] = beside[context.beside];
    const [gain, low, high] = entry.slice(place, place + 3);
    if (place === GAIN && entry[CHOICE] === entry[USUAL] && !noEntry(data, entry)) return "This is the usual choice.";
    if (gain === null) return `The gain over ${name} is not known.`;
    const how = entry[PAIRED] ? ", measured in pairs" : "";
    const [times, between] = within(gain, low, high, 3, data.percents[entry[BASIS]]);
    const said = open(low, high);
    if (said) return `${said === "tie" ? "A tie with" : "Undecided against"} ${name}: ${times} times its speed${between}${how}.`;
    return `${times} times the speed of ${name}${between}${unsure(data, entry, low)}${how}.`;
  };
  const fromDatasheet = (data, entry) => entry[BASIS] === data.bases.length - 1;
  const noEntry = (data, entry) => data.between.includes(entry[BASIS], 2);
  const time = (data, entry, far) => {
    const off = fromDatasheet(data, entry) ? `, ${data.off}` : unsure(data, entry, entry[LOW]);
    if (entry[TIME] !== null) return `${within(entry[TIME], entry[LOW], entry[HIGH], sure(entry[TIME], entry[LOW], entry[HIGH]), data.percents[entry[BASIS]], " ms").join("")}${off}.`;
    return fromDatasheet(data, entry) && far === 1 ? sentence(data.words.link) : "Its time is not known.";
  };

  // What else comes with an answer of the model: how such answers did on GPUs that were held out.
  const heldOut = (data, entry) => data.heldOut && entry[BASIS] >= data.bases.length - 2
    ? [element("p", data.heldOut, "note")] : [];
  const covered = (data, entry) => data.covered[entry[GPU]] && entry[LOW] !== null && entry[BASIS] !== data.measured
    ? [element("p", data.covered[entry[GPU]], "note")] : [];
  // Why a configuration of a later rank may have a shorter time.
  const order = (data, entry) => {
    const times = [entry[TIME], ...entry[OTHERS].map((one) => one[1]).filter((one) => one !== null)];
    if (times.every((one, place) => !place || times[place - 1] <= one)) return [];
    if (entry[BASIS] !== data.measured) return [element("p", sentence(data.words.order), "note")];
    return [element("p", entry[ALIKE] > 1
      ? "A measured configuration with a shorter time cannot be told apart from this one."
      : "No measured configuration has the gain over the usual choice that the settings require (least_gain).", "note")];
  };

  // What to try next, the usual choice and the baseline, each with its time.
  const ranked = (data, entry, libraries_) => {
    if (entry[TIME] === null) return [];
    // The heading names the answer, the text below it its limits; of its variant, what differs: names are long.
    const whole = (choice) => ({ ...data.neutral, ...Object.fromEntries(data.configurations[choice].values) });
    const first = whole(entry[CHOICE]);
    const words = (choice) => {
      if (choice === entry[CHOICE]) return "this answer";
      if (whole(choice).variant !== first.variant) return data.configurations[choice].words;
      return `the same with ${Object.entries(whole(choice)).filter(([name, own]) => first[name] !== own).map((pair) => pair.join("=")).join(" ")}`;
    };
    const rows = [[entry[CHOICE], entry[TIME], entry[LOW], entry[HIGH]], ...entry[OTHERS].filter((one) => one[1] !== null)];
    const measured = entry[BASIS] === data.measured;
    const more = [[entry[USUAL], GAIN], [data.baseline, BASELINE]];
    for (const [choice, place] of more) {
      if (entry[place] !== null && !rows.some((row) => row[0] === choice)) {
        rows.push([choice, entry[TIME] * entry[place], ...(measured ? entry.slice(place + 1, place + 3).map((end) => end && entry[TIME] * end) : [])]);
      }
    }
    const named = libraries_.filter((one) => one.far === 1).map((one) => {
      const [ms, low, high] = relativeTo(data, entry, one).map((ratio) => ratio === null ? null : ratio * entry[TIME]);
      return [one.name, ms, low, high, true];
    }).filter(([, ms]) => ms !== null);
    rows.push(...named);
    if (rows.length < 2) return [];
    const percent = data.percents[entry[BASIS]];
    const table = element("table", "", "ranked");
    const caption = element("caption");
    // The answer, what follows it, and what it is compared with.
    const next = rows.length > 1 && entry[OTHERS].length ? ", and what comes next" : "";
    caption.append(element("span", measured ? `Measured, with limits for other cards and days${next}` : `Expected times${next}`));
    const head = element("thead");
    const titles = element("tr");
    for (const [title, unit] of [["configuration", ""], ["time", measured ? "ms" : `ms,\u00a0${percent}\u00a0%`], ["slower", measured ? `%,\u00a0${percent}\u00a0%` : "%"]]) {
      const cell = element("th", title, unit ? "number" : "");
      cell.scope = "col";
      if (unit) cell.append(" ", element("span", unit, "unit"));
      titles.append(cell);
    }
    head.append(titles);
    const body = element("tbody");
    // One precision for the column, that of the surest time: by fewer digits a slower one may look faster.
    const digits = Math.max(3, ...rows.filter(([, , low]) => (low ?? null) !== null).map(([, ...limits]) => sure(...limits)));
    rows.forEach(([choice, ms, low = null, high = null, isLibrary = false], place) => {
      const line = element("tr");
      const name = element("th", isLibrary ? choice : words(choice));
      name.scope = "row";
      const kinds = [isLibrary ? "in pairs" : "", choice === entry[USUAL] ? "usual choice" : "", choice === data.baseline ? "baseline" : ""].filter((one) => one);
      if (kinds.length) name.append(" ", element("span", `(${kinds.join(", ")})`, "unit"));
      const took = element("td", number(ms, digits));
      // Limits of a measured time are beside the first, without what both have in common.
      const beside = place && (measured || isLibrary);
      if (place && !beside && low !== null && high !== null) took.append(element("span", `${number(low, digits)} to ${number(high, digits)}`, "detail"));
      const more = (value) => 100 * (value / entry[TIME] - 1);
      const told = beside && low !== null ? window.launchwiseApart([low, ms, high].map(more), 2) : 2;
      const slower = element("td", place ? number(more(ms), told) : "–");
      if (beside && low === null && isLibrary) slower.append(element("span", FEW, "detail"));
      else if (beside && low !== null) {
        const said = open(low / entry[TIME], high / entry[TIME]);
        slower.append(element("span", `${number(more(low), told)} to ${number(more(high), told)}${said && `, ${said}`}`, "detail"));
      }
      line.append(name, took, slower);
      body.append(line);
    });
    table.append(caption, head, body);
    const region = element("div", "", "scroll");
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "Configurations by time");
    region.append(table);
    return [region];
  };

  // What a blind test found of the answer that was written down before this problem was measured.
  const blindTest = (data, context, asked) => {
    const row = (Object.hasOwn(data.tested, context.gpu) ? data.tested[context.gpu] : []).find(([problem]) => problem.every((one, k) => one === asked[k]));
    if (!row) return [];
    const [, fraction, gain, low, high, isUsual] = row;
    const [times, between] = within(gain, low, high, 3, 95);
    const speed_ = isUsual ? "it was the usual choice" : `${times} times the speed of the usual choice${between}`;
    return [element("p", `Blind test of this very problem: the answer written down beforehand reached ${number(100 * fraction)} % of the best speed; ${speed_}.`, "tested")];
  };
  // Libraries that ran in pairs at the nearest problem of the kind that is asked: name, their time relative to the fastest kernel and to the usual choice.
  const libraries = (data, context, asked) => {
    const kindOf = (problem) => data.kinds.findIndex((tree) => value(tree, problemOf(data, problem)));
    const rows = (Object.hasOwn(data.libraries, context.gpu) ? data.libraries[context.gpu] : []).map(([problem, name, ...ratios]) => (
      { problem, name, ratios, far: kindOf(problem) === kindOf(asked) ? distance(asked, problem) : Infinity }));
    const least = Math.min(...rows.map((one) => one.far));
    return least === Infinity ? [] : rows.filter((one) => one.far === least);
  };
  const relativeTo = (data, entry, { ratios }) => entry[CHOICE] === entry[USUAL] ? ratios.slice(3) : ratios.slice(0, 3);
  // Whether a library is surely faster than the fastest kernel: ratios are its time over the kernel's.
  const isFaster = ({ ratios: [, low, high] }) => outcome(low, high) === "slower";
  const FEW = "too few rounds for an interval";
  const libraryWords = ({ name, ratios: [ratio, low, high] }) => open(low, high)
    ? `${name}: ${open(low, high) === "tie" ? "a tie with" : "undecided against"} the fastest kernel here (${number(low)} to ${number(high)} times its time)`
    : `${name} ${ratio < 1 ? `is ${number(1 / ratio)} times as fast` : `takes ${number(ratio)} times as long`} as the fastest kernel here${low === null ? `, in ${FEW}` : ""}`;
  // Of another problem than the one asked; of this one the table has a row each.
  const besides = (data, found, name) => found.filter((one) => one.far > 1).map((one) => element("p",
    `At ${name(one.problem)}, the nearest problem with libraries in pairs, ${libraryWords(one)}.`, isFaster(one) ? "notice" : "note"));
  // What is in doubt of the sweep, and whether it touches this answer.
  const doubt = (data, entry, context) => {
    if (!Object.hasOwn(data.doubts, context.gpu) || entry[BLIND] || noEntry(data, entry)) return [];
    const [words, places] = data.doubts[context.gpu];
    const health = `${context.root}gpus.html#verdicts`;
    if (entry[BASIS] === data.measured && entry[PAIRED] && entry[CHOICE] !== entry[USUAL]) {
      return [linked("", "Doubts about the sweep", health, " do not touch this answer: it ran in pairs.")];
    }
    const touches = entry[BASIS] !== data.measured ? "The model learnt from these rows"
      : places.some((place) => data.problems[place] === entry[PROBLEM]) ? "This answer rests on such rows" : "This answer rests on other rows";
    return [linked("In doubt: ", words, health, `. ${touches}.`)];
  };
  const replaces = (data, entry) => {
    const [[, variant]] = data.configurations[entry[CHOICE]].values.filter(([name]) => name === "variant");
    return data.several[variant] ? [element("p", data.several[variant])] : [];
  };
  const landscape = (data, entry, context) => {
    if (entry[BASIS] !== data.measured || entry[BLIND]) return [];
    const state = new URLSearchParams({ gpu: context.gpu });
    data.parameters.forEach((one, k) => state.set(`p-${one.name}`, entry[PROBLEM][k]));
    const path = `${context.root}${encodeURIComponent(context.study)}/index.html#${encodeURIComponent(context.study)}-explore?${state}`;
    const link = linked("", "All configurations of this problem", path);
    link.className = "every";
    return [link];
  };
  const fasterLine = (data, entry, context) => {
    const place = element("p", "", "faster");
    place.hidden = true;
    if (entry[LOW] !== null) {
      window.launchwiseFaster = context.faster(entry).then((found) => {
        if (!found) return;
        place.hidden = false;
        const state = new URLSearchParams(location.hash.split("?")[1] ?? "");
        state.set("study", found.study);
        const link = element("a", found.title);
        link.href = `#find?${state}`;
        place.append(`A faster kernel of the same workload: ${found.words}, ${number(found.time, 4)} ms (${found.basis}), by the study “`, link, "”.");
      }).catch(() => {});
    }
    return place;
  };

  const card = (data, found, asked, context) => {
    const made = [];
    const name = (problem) => data.parameters.map((one, k) => `${one.name} = ${window.launchwiseShown(problem[k])}`).join(", ");
    const words = (entry) => data.configurations[entry[CHOICE]].words;
    const { entry } = found;
    const measured = entry[BASIS] === data.measured;
    const command = ["launchwise", "recommend", ...context.options, context.study, "--gpu", context.gpu, ...data.parameters.map((one, k) => `${one.name}=${asked[k]}`)].map(word).join(" ");
    const beside = libraries(data, context, asked);
    const faster = beside.filter((one) => one.far === 1 && isFaster(one)).sort((one, other) => one.ratios[0] - other.ratios[0]);
    const heading = element("p", faster.length ? `Use ${faster[0].name}, ${number(1 / faster[0].ratios[0])} times as fast in pairs; of the kernels here: ` : "Use ", "use");
    heading.append(element("strong", words(entry)));
    made.push(heading);
    const listed = found.near === entry;
    made.push(element("p", `${time(data, entry, found.far)} ${speed(data, entry, context)}`));
    const basis = `Basis: ${data.bases[entry[BASIS]]}${entry[BLIND] ? ", in a blind test" : ""}`;
    const alike = entry[ALIKE] > 1 ? `; ${entry[ALIKE] - 1} other measured cannot be told apart from it` : "";
    const unsure = entry[UNSURE] > 1 ? `; others, measured up to ${number(100 * (entry[UNSURE] - 1), 2)} % slower, are not known well enough to tell` : "";
    const by = found.far < 2 ? `${number(100 * (found.far - 1), 2)} %` : `a factor of ${number(found.far, 3)}`;
    const outside = found.far > 1 ? `, outside of what it measured by ${by}` : "";
    const reached = data.rule.reached[entry[GPU]];
    const [factors] = data.rule.between[entry[GPU]];
    const off = factors ? `: nine of ten such times are within a factor of ${number(Math.max(1 / factors[0], factors[1]), 3)}` : "";
    const nearest = name(found.near[PROBLEM]);
    const named = found.far === 1 && entry[TIME] !== null
      ? `; its time is scaled from ${nearest}, the nearest with an answer${off}`
      : `${found.far === 1 ? "" : `; ${data.words.beyond}`}; the nearest with an answer is ${nearest}`;
    const scaled = listed ? "" : `${named}${found.far === 1 && reached ? `; ${reached}` : ""}`;
    const why = data.why[data.entries.indexOf(entry)] ? `; ${data.why[data.entries.indexOf(entry)]}` : "";
    made.push(element("p", `${basis}${alike}${unsure}${outside}${scaled}${why}.`));
    const { values } = data.configurations[entry[CHOICE]];
    const taken = taking(values, launchesOf(data, values, asked), macrosOf(data, values, asked), data.hosted, command);
    made.push(...doubt(data, entry, context), ...replaces(data, entry), ...heldOut(data, entry), ...covered(data, entry), ...blindTest(data, context, asked), ...besides(data, beside, name), taken, ...ranked(data, entry, beside), ...(measured ? [] : order(data, entry)), fasterLine(data, entry, context));
    const notes = measured ? order(data, entry) : [];
    if (data.usual) notes.push(element("p", `Usual: ${data.usual}.`, "note"));
    const fold = element("details");
    fold.append(element("summary", "Notes"), ...notes);
    return [...made, ...landscape(data, entry, context), ...(notes.length ? [fold] : [])];
  };

  window.launchwiseAnswer = { EQUAL, element, number, card };
})();
