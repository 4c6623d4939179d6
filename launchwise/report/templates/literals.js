(() => {
  "use strict";
  // Texts of a report in other languages, as launchwise/base/literals.py writes them: they stay texts.
  // C++ and Python read the same escapes; ? is one, since ??/ is a backslash to older compilers.
  const escaped = (letter) => {
    const number = letter.codePointAt(0);
    if (number < 128) return `\\${number.toString(8).padStart(3, "0")}`;
    return `\\U${number.toString(16).padStart(8, "0")}`;
  };
  window.launchwiseLiteral = (text) => `"${text.replace(/[^ !#->@-[\]-~]/gu, escaped)}"`;
  // A word of a shell.
  window.launchwiseWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`);
  // A cell of CSV: what a spreadsheet would take for a formula begins with an apostrophe.
  // Programs split at semicolons or tabs, too, and take wide signs.
  const formula = /(^|[;\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])/g;
  const number = /^[+-]?(\d[\d\s]*)?\.?\d+(e[-+]?\d+)?$/i;
  window.launchwiseCell = (text) => {
    const cell = number.test(text) ? text : text.replace(formula, "$1'");
    return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  // JSON whose objects have no keys but their own: names of files are keys, "constructor" is one.
  window.launchwiseParsed = (text) => JSON.parse(text, (_, value) => (
    value !== null && typeof value === "object" && !Array.isArray(value) ? Object.assign(Object.create(null), value) : value));
  // plotly.js reads tags in texts: those that pages write themselves alone.
  window.launchwisePlotted = (figure) => JSON.parse(JSON.stringify(figure), (_, value) => (
    typeof value === "string" ? value.replace(/<(?!br>|\/?extra>)/g, "&lt;") : value));
})();
