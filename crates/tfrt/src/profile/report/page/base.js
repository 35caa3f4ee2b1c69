// The document, and what all views need: elements, numbers in words, colours, the tip.

const data = JSON.parse(document.getElementById("data").textContent);
const { kernels, lines, functions, scopes, names } = data;
const failures = [];
addEventListener("error", (event) => failures.push(event.message));

/** Makes an element. Texts become text, whatever is in them. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "style") element.style.cssText = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const byId = (id) => document.getElementById(id);

/** Three digits of a number, with the unit that fits. */
function inUnits(value, units) {
  let [name, size] = units[0];
  for (const unit of units) if (value >= 0.9995 * unit[1]) [name, size] = unit;
  const number = value / size;
  const digits = size === 1 && Number.isInteger(value) ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return `${number.toFixed(digits)} ${name}`;
}

const time = (ns) => inUnits(ns, [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]);
const bytes = (n) => inUnits(n, [["B", 1], ["KiB", 1024], ["MiB", 2 ** 20], ["GiB", 2 ** 30]]);
const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const percent = (part) => `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)}%`;
const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/** Marks with this number or a lower one are parts of kernels. */
const PART = -10;
/** The kernel that a mark is for; -1 for several. */
const kernelOfMark = (what) => (what <= PART ? PART - what : what);

/** When the first thing that is shown began: times are told from there. */
let begin_ns = Infinity;
for (const call of data.calls) begin_ns = Math.min(begin_ns, call.begin_ns);
let end_ns = 0;
for (const call of data.calls) end_ns = Math.max(end_ns, call.end_ns);
for (const thread of data.threads) {
  // Four numbers a mark: what, since the one before, how long, how many.
  const n = thread.marks.length / 4;
  const at = new Float64Array(n), took = new Float64Array(n), what = new Int32Array(n), many = new Int32Array(n);
  let now = 0;
  for (let i = 0; i < n; i++) {
    now += thread.marks[4 * i + 1];
    at[i] = now;
    took[i] = thread.marks[4 * i + 2];
    what[i] = thread.marks[4 * i];
    many[i] = thread.marks[4 * i + 3];
    if (what[i] >= -1 || what[i] <= PART) {
      begin_ns = Math.min(begin_ns, now);
      end_ns = Math.max(end_ns, now + took[i]);
    }
  }
  Object.assign(thread, { at, took, what, many, marks: null });
}
/** Workers, and other threads that did something: workers first, but what only slept comes last. */
const threads = data.threads
  .filter((thread) => thread.busy_ns > 0 || thread.is_worker)
  .sort((a, b) => (b.busy_ns > 0) - (a.busy_ns > 0) || b.is_worker - a.is_worker
    || (a.is_worker ? a.name.localeCompare(b.name, "en", { numeric: true }) : b.busy_ns - a.busy_ns));
if (begin_ns > end_ns) [begin_ns, end_ns] = [0, Math.max(1, data.end_ns)];

/** What runs of kernels of one name come to. */
const byName = names.map((name, index) => ({ name, index, runs: 0, own: 0, longest: 0, critical: 0 }));
kernels.name.forEach((name, kernel) => {
  const row = byName[name];
  row.runs += kernels.runs[kernel];
  row.own += kernels.own_ns[kernel];
  row.longest = Math.max(row.longest, kernels.longest_ns[kernel]);
  row.critical += kernels.critical_ns[kernel];
});
const ranked = byName.filter((row) => row.runs > 0).sort((a, b) => b.own - a.own || (a.name < b.name ? -1 : 1));
const allOwn = sum(ranked.map((row) => row.own));

/** Names that take the most time have a colour each; the others share one. */
const N_COLOURS = 8;
const colourOf = names.map(() => N_COLOURS);
ranked.slice(0, N_COLOURS).forEach((row, rank) => { colourOf[row.index] = rank; });
const colourName = (colour) => (colour < N_COLOURS ? `--c${colour}` : "--other");
const kernelColour = (kernel) => `var(${colourName(colourOf[kernels.name[kernel]])})`;

/** The function of a kernel, found by halving. */
function functionOf(kernel) {
  let low = 0, high = functions.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (functions[middle].first <= kernel) low = middle; else high = middle - 1;
  }
  return low;
}

function functionName(index) {
  const { name, region_of } = functions[index];
  if (name) return `@${name}`;
  return region_of == null ? "a region" : `region of ${names[kernels.name[region_of]]}`;
}

function placeName(line) {
  const file = data.files[lines.file[line]];
  if (!file) return "no place known";
  return file.is_words ? file.name : `${file.name.split("/").pop()}:${lines.line[line]}`;
}

const tip = byId("tip");
/** Shows lines of text near a point, inside of the window. */
function showTip(x, y, [title, ...texts]) {
  tip.replaceChildren(h("b", {}, title), ...texts.filter(Boolean).map((text) => h("div", {}, text)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(x + 14, innerWidth - width - 12);
  const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
  tip.style.left = `${Math.max(12, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}
const hideTip = () => { tip.hidden = true; };

function kernelTip(kernel) {
  const runs = kernels.runs[kernel];
  return [
    names[kernels.name[kernel]],
    `${functionName(functionOf(kernel))}, ${placeName(kernels.line[kernel])}`,
    runs ? `${plural(runs, "run")}, ${time(kernels.own_ns[kernel])} in all, ${time(kernels.own_ns[kernel] / runs)} on average, ${time(kernels.longest_ns[kernel])} at most` : "never ran",
    kernels.critical_ns[kernel] > 0 && `${time(kernels.critical_ns[kernel])} on the critical path`,
  ];
}

/** Light or dark: what the system has, until the button is pressed. */
const redraws = [];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
function setScheme(scheme) {
  document.documentElement.dataset.scheme = scheme;
  redraws.forEach((redraw) => redraw());
}
setScheme(prefersDark.matches ? "dark" : "light");
prefersDark.addEventListener("change", () => setScheme(prefersDark.matches ? "dark" : "light"));
