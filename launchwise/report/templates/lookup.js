(() => {
  "use strict";
  // Which answer a problem gets: the rule of launchwise/exporting/lookup.py, the same at every door.
  // Places in an entry of a study's answers, see launchwise/report/pages/finder.py.
  const [GPU, PROBLEM, BASIS, CHOICE, USUAL, TIME, LOW, HIGH, GAIN, GAIN_LOW, GAIN_HIGH, BASELINE] = [...Array(12).keys()];
  const [PAIRED, BLIND, OTHERS, SCALE, ALIKE, UNSURE] = [14, 15, 16, 17, 18, 19];

  // Expressions of a workload as nested lists: an operator and its operands.
  const operators = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "//": (a, b) => Math.floor(a / b),
    "%": (a, b) => a - b * Math.floor(a / b),
    "**": (a, b) => a ** b,
    "==": (a, b) => Number(a) === Number(b) || a === b,
    "!=": (a, b) => !(Number(a) === Number(b) || a === b),
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    not: (a) => !a,
    negative: (a) => -a,
    ceil_div: (a, b) => Math.ceil(a / b),
    round_up: (a, b) => Math.ceil(a / b) * b,
    next_power_of_2: (a) => 2 ** Math.ceil(Math.log2(Math.max(a, 1))),
    min: Math.min,
    max: Math.max,
    abs: Math.abs,
  };
  const value = (tree, names) => {
    if (!Array.isArray(tree)) return tree;
    const [sign, ...parts] = tree;
    const of = (part) => value(part, names);
    if (sign === "name") return names[parts[0]];
    if (sign === "if") return of(of(parts[0]) ? parts[1] : parts[2]);
    if (sign === "and" || sign === "or") {
      // As in Python: the value of the operand that decides.
      let last;
      for (const part of parts) {
        last = of(part);
        if (Boolean(last) === (sign === "or")) break;
      }
      return last;
    }
    return operators[sign](...parts.map(of));
  };
  // Derived names are computed when they are first read.
  const named = (rule, known) => {
    const names = { ...known };
    for (const [name, tree] of rule.derived) {
      Object.defineProperty(names, name, { configurable: true, get: () => {
        const found = value(tree, names);
        Object.defineProperty(names, name, { value: found });
        return found;
      } });
    }
    return names;
  };

  const ratio = (one, other) => {
    const [low, high] = [Math.min(one, other), Math.max(one, other)];
    return low >= 0 ? (high + 1) / (low + 1) : high - low + 1;
  };
  const distance = (asked, known) => asked.reduce((product, each, place) => {
    if (typeof each === "string") return each === known[place] ? product : Infinity;
    return product * ratio(each, known[place]);
  }, 1);
  const around = (middle, factors) => middle === null || !factors ? [null, null] : factors.map((one) => middle * one);

  const usualChoice = (data, problem) => {
    for (const [when, values, conditions] of data.rule.usual) {
      let names = named(data.rule, { ...problem, variant: "", ...data.neutral });
      if (!value(when, names)) continue;
      const chosen = { variant: "", ...data.neutral };
      for (const [name, tree] of values) {
        names = named(data.rule, { ...problem, ...chosen });
        chosen[name] = value(tree, names);
      }
      names = named(data.rule, { ...problem, ...chosen });
      return conditions.every((tree) => value(tree, names)) ? chosen : null;
    }
    return null;
  };
  const whole = (data, place) => ({ ...data.neutral, ...Object.fromEntries(data.configurations[place].values) });
  // A configuration with what follows from the problem; null where it may not run.
  const moved = (data, chosen, problem, facts) => {
    const found = { ...chosen };
    for (const [name, tree] of data.rule.follows) found[name] = value(tree, named(data.rule, { ...problem, ...found, ...facts }));
    const names = named(data.rule, { ...problem, ...found, ...facts });
    return (data.rule.fits[found.variant] ?? []).every((tree) => value(tree, names)) ? found : null;
  };
  // Log time over that of the best candidate, as the GPU's trees expect it.
  const loss = (data, chosen, problem, facts) => {
    const names = named(data.rule, { ...problem, ...chosen, ...facts });
    const values = data.rule.features.map(([over, under]) => Number(value(over, names)) / (Number(value(under, names)) || 1));
    let found = 0;
    for (const tree of data.judge) {
      let node = tree;
      while (typeof node === "object") node = values[node.feature] <= node.threshold ? node.left : node.right;
      found += node;
    }
    return found;
  };
  // e to a power by products alone: the same in every language.
  const growth = (exponent, squarings) => {
    let found = 1 + exponent / 2 ** squarings;
    for (let k = 0; k < squarings; k += 1) found *= found;
    return found;
  };
  const same = (one, other) => other !== null && Object.keys(one).every((name) => one[name] === other[name]);
  const work = (data, scale, values) => {
    if (!scale) return 1;
    return Number(value(data.rule.work[scale - 1], named(data.rule, problemOf(data, values))));
  };
  const problemOf = (data, values) => Object.fromEntries(data.parameters.map((one, k) => [one.name, values[k]]));

  // Whether something was measured on the GPU of an entry.
  const isKnown = (data, entry) => entry[BASIS] < data.bases.length - 2;
  // How far outside of what was measured, by a GPU's entries; 0 where nothing with these texts was.
  const outside = (data, own, asked) => {
    const there = own.filter((one) => (one[BASIS] === data.measured || !isKnown(data, one)) && distance(asked, one[PROBLEM]) < Infinity);
    if (!there.length) return 0;
    const box = asked.reduce((product, each, place) => {
      const sizes = there.map((one) => one[PROBLEM][place]);
      if (typeof each === "string") return product;
      return product * ratio(each, Math.min(Math.max(each, Math.min(...sizes)), Math.max(...sizes)));
    }, 1);
    const reach = data.rule.between[there[0][GPU]][2];
    return reach === null ? box : Math.max(box, Math.min(...there.map((one) => distance(asked, one[PROBLEM]))) / reach);
  };
  // An entry for a problem that none is of, as the nearest one would look there; null where nothing may run it.
  const between = (data, own, asked) => {
    const near = own.map((entry) => [distance(asked, entry[PROBLEM]), entry]).filter(([far]) => far < Infinity)
      .sort(([one], [other]) => one - other).map(([, entry]) => entry);
    if (!near.length) return null;
    const entry = near.find((one) => one[TIME] !== null) ?? near[0];
    const { rule, judge } = data;
    const [facts, [betweenMs, betweenGain]] = [rule.facts[entry[GPU]], rule.between[entry[GPU]]];
    const problem = problemOf(data, asked);
    const usual = usualChoice(data, problem);
    const places = judge ? rule.candidates : near.map((one) => one[CHOICE]);
    const candidates = [...(judge ? [usual] : []), ...places.map((place) => moved(data, whole(data, place), problem, facts))].filter((one) => one);
    if (!candidates.length) return null;
    let [chosen] = candidates;
    const kept = usual ?? moved(data, whole(data, entry[USUAL]), problem, facts);
    let gain = same(chosen, kept) ? 1 : null;
    if (judge) {
      const losses = candidates.map((one) => loss(data, one, problem, facts));
      const least = Math.min(...losses);
      chosen = candidates[losses.indexOf(least)];
      if (kept) gain = growth(loss(data, kept, problem, facts) - least, rule.squarings);
    }
    const far = outside(data, near, asked);
    let time = entry[TIME] === null || far !== 1 ? null : entry[TIME] * (work(data, entry[SCALE], asked) / work(data, entry[SCALE], entry[PROBLEM]));
    const isUsual = same(chosen, kept);
    let limits = around(time, betweenMs);
    let gains = isUsual || far !== 1 ? [null, null] : around(gain, betweenGain);
    if (rule.leastGain !== null && !isUsual && !(gains[0] >= rule.leastGain)) {
      chosen = kept ?? whole(data, entry[USUAL]);
      time = time === null || gain === null ? null : time * gain;
      [gain, gains, limits] = [1, [null, null], [null, null]];
    }
    const basis = isKnown(data, entry) ? data.between[far === 1 ? 0 : 1] : entry[BASIS];
    const answer = [entry[GPU], asked, basis, place(data, chosen), place(data, kept ?? whole(data, entry[USUAL])),
      time, ...limits, gain, ...gains, null, null, null, 0, 0, [], 0, null];
    return { entry: answer, near: entry, far };
  };
  // Place of a configuration, the next one if it is new.
  const place = (data, chosen) => {
    const known = data.configurations.findIndex((_, k) => same(whole(data, k), chosen));
    if (known >= 0) return known;
    const values = Object.entries(chosen);
    return data.configurations.push({ words: values.filter(([, each]) => each !== 0).map(([name, each]) => name === "variant" ? each : `${name}=${each}`).join(" "), values }) - 1;
  };

  // Where no entry answers: the usual choice, or the default.
  const noEntry = (data, number, asked) => {
    const usual = usualChoice(data, problemOf(data, asked));
    const chosen = usual ? place(data, usual) : data.baseline;
    const entry = [number, asked, data.between[usual ? 2 : 3], chosen, chosen, ...Array(9).fill(null), 0, 0, [], 0, null];
    return { entry, near: entry, far: 1 };
  };
  // The entry that answers, with its problem in `near` and how far outside it is.
  const look = (data, gpu, asked) => {
    const number = data.gpus.indexOf(gpu);
    const own = data.entries.filter((entry) => entry[GPU] === number);
    const listed = own.find((entry) => distance(asked, entry[PROBLEM]) === 1);
    return listed ? { entry: listed, near: listed, far: outside(data, own, asked) } : between(data, own, asked) ?? noEntry(data, number, asked);
  };

  window.launchwiseValue = value;
  window.launchwiseLookup = { GPU, PROBLEM, BASIS, CHOICE, USUAL, TIME, LOW, HIGH, GAIN, BASELINE, PAIRED, BLIND, OTHERS, ALIKE, UNSURE, look, distance, problemOf };
})();
