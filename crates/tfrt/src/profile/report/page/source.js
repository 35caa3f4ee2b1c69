// The source, with the time of each line beside it.

const ROWS_IN_CHUNK = 100;
let openFile = null;
const rowOfLine = new Map();

/** Lines of each file by their numbers there; -1 has kernels whose place nobody knows. */
const linesOfFile = new Map();
lines.file.forEach((file, line) => {
  if (!linesOfFile.has(file)) linesOfFile.set(file, []);
  linesOfFile.get(file).push(line);
});
const hottest = Math.max(1, ...lines.own_ns.slice().sort((a, b) => b - a).slice(0, 1));
const hottestTotal = Math.max(1, ...lines.total_ns.slice().sort((a, b) => b - a).slice(0, 1));

/** A colour behind a number: its root, so that what is small is seen at all. */
const heat = (part) => (part > 0 ? `background:rgba(var(--heat),${(0.06 + 0.62 * Math.sqrt(part)).toFixed(3)})` : null);

const TOKENS = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(%[\w$.#-]+)|(@[\w$.-]+)/g;
const TOKEN_CLASSES = ["tok-c", "tok-s", "tok-v", "tok-f"];
function highlighted(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    parts.push(h("span", { class: TOKEN_CLASSES[kind] }, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

function lineRow(number, text, line) {
  const runs = line == null ? 0 : lines.runs[line];
  const own = runs ? lines.own_ns[line] : 0, total = runs ? lines.total_ns[line] : 0;
  const failed = line != null && failuresOfLine.get(line);
  const classes = ["row"];
  if (runs && lines.critical_ns[line] > 0) classes.push("critical");
  if (failed) classes.push("failed");
  const row = h("div", { class: classes.join(" ") },
    h("span", { style: heat(own / hottest) }, runs ? time(own) : ""),
    h("span", { style: total > own * 1.0005 ? heat(total / hottestTotal) : null }, runs ? time(total) : ""),
    h("span", {}, runs ? count(runs) : ""),
    h("span", {}, runs ? time(own / runs) : ""),
    h("span", { class: "n" }, String(number)),
    h("span", {}, ...highlighted(text)));
  if (line != null) rowOfLine.set(line, row);
  const told = (failed || []).map((message) => h("div", { class: "failure" }, message));
  return [row, ...told];
}

const failuresOfLine = new Map();
for (const { line, message, kernel } of data.errors) {
  if (line < 0) continue;
  if (!failuresOfLine.has(line)) failuresOfLine.set(line, []);
  const told = failuresOfLine.get(line);
  if (told.length < 5) told.push(kernel ? `${kernel}: ${message}` : message);
}

/** The rows of a file: its text, or what is known of its lines without it. */
function fileRows(index, onlyRun) {
  const known = linesOfFile.get(index) || [];
  const file = data.files[index];
  const byNumber = new Map();
  known.forEach((line) => byNumber.set(lines.line[line], line));
  const rows = [];
  if (!file || file.is_words || !file.has_text) {
    const sorted = known.slice().sort((a, b) => lines.line[a] - lines.line[b]);
    for (const line of sorted) rows.push([lines.line[line] || "", kernelsOnLine(line), line]);
    return rows;
  }
  let next = 1;
  const seen = new Set();
  for (const { first, lines: texts } of file.text) {
    if (first > next && !onlyRun) rows.push(["", `… ${plural(first - next, "line")} …`, null]);
    texts.forEach((text, at) => {
      const line = byNumber.get(first + at);
      seen.add(first + at);
      if (!onlyRun || (line != null && (lines.runs[line] || failuresOfLine.has(line)))) rows.push([first + at, text, line]);
    });
    next = first + texts.length;
  }
  if (next <= file.n_lines && !onlyRun) rows.push(["", `… ${plural(file.n_lines - next + 1, "line")} …`, null]);
  for (const [number, line] of byNumber) if (!seen.has(number)) rows.push([number || "", kernelsOnLine(line), line]);
  return rows;
}

let kernelNamesOfLine = null;
function kernelsOnLine(line) {
  if (!kernelNamesOfLine) {
    kernelNamesOfLine = new Map();
    kernels.line.forEach((on, kernel) => {
      if (!kernelNamesOfLine.has(on)) kernelNamesOfLine.set(on, new Set());
      kernelNamesOfLine.get(on).add(names[kernels.name[kernel]]);
    });
  }
  const all = [...(kernelNamesOfLine.get(line) || [])];
  return all.slice(0, 6).join(", ") + (all.length > 6 ? `, and ${all.length - 6} more` : "");
}

const onlyRun = h("input", { type: "checkbox", onchange: () => openSource(openFile) });
const fileNote = h("span", { class: "soft" });
let hotAt = -1, hotLines = [];

function openSource(index) {
  openFile = index;
  rowOfLine.clear();
  const file = data.files[index];
  const rows = fileRows(index, onlyRun.checked);
  const inner = h("div", { class: "inner" }, h("div", { class: "row top" },
    ...["own", "with calls", "runs", "mean", "line", file ? (file.has_text ? "" : "kernels") : "kernels without a place"].map((text) => h("span", {}, text))));
  chunkOfLine.clear();
  sight.disconnect();
  for (let at = 0; at < rows.length; at += ROWS_IN_CHUNK) {
    const some = rows.slice(at, at + ROWS_IN_CHUNK);
    const chunk = h("div", { class: "chunk", style: `contain-intrinsic-size:auto ${20 * some.length}px` },
      some.map(([, text]) => text || " ").join("\n"));
    chunk.rows = some;
    for (const [, , line] of some) if (line != null) chunkOfLine.set(line, chunk);
    if (at === 0) build(chunk); else sight.observe(chunk);
    inner.append(chunk);
  }
  const note = !file ? "" : file.is_words || file.has_text ? (file.is_read_later ? "read after the run: it may have changed since the program was compiled" : "") : "its text was not found";
  fileNote.textContent = note;
  const body = rows.length ? inner : h("p", { class: "empty" }, "No line of this file ran.");
  byId("source-panel").replaceChildren(h("div", { class: "lines", tabindex: 0, role: "region", "aria-label": "Lines with their times" }, body));
  hotLines = (linesOfFile.get(index) || []).filter((line) => lines.own_ns[line] > 0).sort((a, b) => lines.own_ns[b] - lines.own_ns[a]).slice(0, 50);
  hotAt = -1;
  if (fileChoice) fileChoice.value = String(index);
}

/** Chunks of lines are plain text, which can be searched, until they are about to be seen. */
const chunkOfLine = new Map();
const sight = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) build(target);
}, { rootMargin: "400px" });
function build(chunk) {
  if (!chunk || !chunk.rows) return;
  chunk.replaceChildren(...chunk.rows.flatMap(([number, text, line]) => lineRow(number, text, line)));
  chunk.rows = null;
  sight.unobserve(chunk);
}

/** Shows a line, in its file. */
function showLine(line, { jump = true } = {}) {
  if (openFile !== lines.file[line]) openSource(lines.file[line]);
  if (!chunkOfLine.has(line) && onlyRun.checked) {
    onlyRun.checked = false;
    openSource(openFile);
  }
  build(chunkOfLine.get(line));
  const row = rowOfLine.get(line);
  if (!row) return;
  document.querySelectorAll(".row.target").forEach((old) => old.classList.remove("target"));
  row.classList.add("target");
  if (jump) byId("source").scrollIntoView();
  const box = row.closest(".lines");
  // Chunks that were never shown have heights that are guessed: the second time they are known.
  for (let turn = 0; turn < 2; turn++) {
    const place = row.getBoundingClientRect(), around = box.getBoundingClientRect();
    box.scrollTop += place.top - around.top - box.clientHeight / 3;
  }
}

function step(by) {
  if (!hotLines.length) return;
  hotAt = Math.max(0, Math.min(hotLines.length - 1, hotAt + by));
  showLine(hotLines[hotAt], { jump: false });
}

let fileChoice = null;
function source() {
  const timeOf = (index) => sum((linesOfFile.get(index) || []).map((line) => lines.own_ns[line]));
  const all = [...linesOfFile.keys()].map((index) => [index, timeOf(index)]).sort((a, b) => b[1] - a[1]);
  const tools = byId("source-tools");
  tools.append(fileNote);
  if (all.length > 1) {
    const label = (index) => (data.files[index] ? data.files[index].name : "without a place");
    fileChoice = h("select", { "aria-label": "File", onchange: () => openSource(Number(fileChoice.value)) },
      ...all.slice(0, 200).map(([index, own]) => h("option", { value: index }, `${label(index)} (${time(own)})`)));
    tools.append(fileChoice);
  }
  tools.append(h("label", {}, onlyRun, "only lines that ran"),
    h("button", { type: "button", onclick: () => step(-1), "aria-label": "Hotter line" }, "↑ hotter"),
    h("button", { type: "button", onclick: () => step(1), "aria-label": "Next hottest line" }, "↓ hottest line"));
  if (all.length) openSource(all[0][0]);
  else byId("source-panel").append(h("p", { class: "empty" }, "No kernel ran, so that there are no lines to show."));
}
