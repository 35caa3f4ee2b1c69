// The timeline: what each thread did when, and the memory under it, on one canvas.

const MAX_THREADS = 8;
const AXIS = 26, CALLS = 20, THREAD = 36, MEMORY = 112;
const KERNEL_TOP = 11, KERNEL_HEIGHT = 18;
const view = { from: begin_ns, to: end_ns };
const margin = Math.max(1, (end_ns - begin_ns) * 0.01);
let shownThreads = [];
let canvas, pen, width = 0, gutter = 0, colours = {};

/** Marks of a thread by what is drawn in one place: these don't overlap. */
for (const thread of data.threads) {
  const of = (is) => Array.from(thread.what.keys()).filter((mark) => is(thread.what[mark]));
  thread.kernelMarks = of((what) => what >= -1 || what <= PART);
  thread.taskMarks = of((what) => what === -2);
  thread.sleepMarks = of((what) => what === -3);
  thread.stealMarks = of((what) => what === -4);
}

const x = (ns) => gutter + ((ns - view.from) / (view.to - view.from)) * (width - gutter);
const nsAt = (px) => view.from + ((px - gutter) / (width - gutter)) * (view.to - view.from);
const threadTop = (row) => AXIS + (data.calls.length ? CALLS : 0) + row * THREAD;
const memoryTop = () => threadTop(shownThreads.length) + 10;
const canvasHeight = () => memoryTop() + (data.memory ? MEMORY : 0);

/** The last of `marks` that begins at or before a moment, or -1. */
function lastBefore(thread, marks, ns) {
  let low = -1, high = marks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (thread.at[marks[middle]] <= ns) low = middle; else high = middle - 1;
  }
  return low;
}

/**
 * Calls `wide` for marks that are wide enough to be seen, and `narrow` for columns of pixels with what
 * is not: how much of the column is covered, and by what mostly.
 */
function eachMark(thread, marks, wide, narrow) {
  let column = -1, covered = 0, most = -1, mostTook = -1;
  const flush = () => {
    if (column >= 0) narrow(column, covered, most);
    [column, covered, most, mostTook] = [-1, 0, -1, -1];
  };
  const perPixel = (view.to - view.from) / Math.max(1, width - gutter);
  for (let i = Math.max(0, lastBefore(thread, marks, view.from)); i < marks.length; i++) {
    const mark = marks[i], at = thread.at[mark], took = thread.took[mark];
    if (at > view.to) break;
    if (at + took < view.from) continue;
    const from = Math.max(gutter, x(at)), to = Math.min(width, x(at + took));
    if (to - from >= 1.5) {
      flush();
      wide(mark, from, to);
      continue;
    }
    const in_column = Math.floor(from);
    if (in_column !== column) flush();
    column = in_column;
    covered += took / perPixel;
    if (took > mostTook) [most, mostTook] = [mark, took];
  }
  flush();
}

function markColour(thread, mark) {
  const kernel = kernelOfMark(thread.what[mark]);
  return kernel < 0 ? colours["--several"] : colours[colourName(colourOf[kernels.name[kernel]])];
}

function label(text, left, right, y) {
  const room = right - left - 8;
  if (room < 24) return;
  const letter = pen.measureText("m").width * 0.92;
  const fits = Math.floor(room / letter);
  if (fits < 3) return;
  pen.fillText(text.length > fits ? `${text.slice(0, fits - 1)}…` : text, left + 4, y);
}

function drawThread(thread, row) {
  const top = threadTop(row);
  pen.fillStyle = colours["--line"];
  pen.fillRect(0, top, width, 1);
  pen.fillStyle = colours["--ink"];
  pen.font = "12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  pen.save();
  pen.beginPath();
  pen.rect(0, top, gutter - 8, THREAD);
  pen.clip();
  pen.fillText(thread.name.replace(/^tfrt-/, ""), 12, top + KERNEL_TOP + 13);
  pen.restore();

  const strip = (marks, y, height, fill, text) => eachMark(thread, marks,
    (mark, from, to) => {
      pen.fillStyle = fill;
      pen.fillRect(from, y, to - from, height);
      pen.fillStyle = colours["--soft"];
      if (text && from + 60 < to && !inKernels(mark)) label(text, from, to, y + 15);
    },
    (column) => { pen.fillStyle = fill; pen.fillRect(column, y, 1, height); });
  /** Whether a kernel ran inside of a task. */
  const inKernels = (task) => {
    const at = lastBefore(thread, thread.kernelMarks, thread.at[task] + thread.took[task]);
    return at >= 0 && thread.at[thread.kernelMarks[at]] >= thread.at[task];
  };
  strip(thread.sleepMarks, top + KERNEL_TOP + 8, 2, colours["--several"]);
  strip(thread.taskMarks, top + KERNEL_TOP - 3, KERNEL_HEIGHT + 3, colours["--task"], "task");

  pen.font = "11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  eachMark(thread, thread.kernelMarks, (mark, from, to) => {
    pen.fillStyle = markColour(thread, mark);
    // A line between neighbours, where there is room for it.
    pen.fillRect(from, top + KERNEL_TOP, to - from - (to - from > 4 ? 1 : 0), KERNEL_HEIGHT);
    const kernel = kernelOfMark(thread.what[mark]);
    pen.fillStyle = colours.onKernel;
    label(kernel < 0 ? plural(Math.abs(thread.many[mark]), "kernel") : names[kernels.name[kernel]], from, to, top + KERNEL_TOP + 13);
  }, (column, covered, mark) => {
    pen.globalAlpha = Math.min(1, 0.3 + 0.7 * covered);
    pen.fillStyle = markColour(thread, mark);
    pen.fillRect(column, top + KERNEL_TOP, 1, KERNEL_HEIGHT);
    pen.globalAlpha = 1;
  });
  const critical = thread.kernelMarks.filter((mark) => thread.many[mark] < 0);
  pen.fillStyle = colours["--critical"];
  eachMark(thread, critical,
    (mark, from, to) => pen.fillRect(from, top + KERNEL_TOP + KERNEL_HEIGHT + 1, to - from, 3),
    (column) => pen.fillRect(column, top + KERNEL_TOP + KERNEL_HEIGHT + 1, 1.5, 3));
  strip(thread.stealMarks, top + 4, 3, colours["--soft"]);
}

/** A step of 1, 2 or 5 times a power of ten, of which about `n` fit. */
function roundStep(length, n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1e-9, length / n)));
  const times = length / n / power;
  return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

function drawAxis(height) {
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  const step = roundStep(view.to - view.from, Math.max(2, (width - gutter) / 110));
  for (let at = Math.ceil((view.from - begin_ns) / step) * step; at <= view.to - begin_ns; at += step) {
    const px = x(begin_ns + at);
    if (px < gutter) continue;
    pen.fillStyle = colours["--line"];
    pen.fillRect(px, AXIS - 6, 1, height - AXIS + 6);
    pen.fillStyle = colours["--soft"];
    const text = axisTime(at, step);
    if (px + pen.measureText(text).width + 4 < width) pen.fillText(text, px + 3, AXIS - 10);
  }
}

/** A time on an axis, with the digits that tell neighbours apart. */
function axisTime(ns, step) {
  const [unit, size] = Math.abs(view.to - begin_ns) >= 1e9 ? ["s", 1e9] : Math.abs(view.to - begin_ns) >= 1e6 ? ["ms", 1e6] : Math.abs(view.to - begin_ns) >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

function drawCalls() {
  if (!data.calls.length) return;
  pen.fillStyle = colours["--soft"];
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  pen.fillText("calls", 12, AXIS + 13);
  data.calls.forEach((call, index) => {
    const from = Math.max(gutter, x(call.begin_ns)), to = Math.min(width, x(call.end_ns));
    if (to <= gutter || from >= width) return;
    pen.fillStyle = colours[call.outcome === "returned" ? (index % 2 ? "--task" : "--raised") : "--failed"];
    pen.fillRect(from, AXIS + 1, Math.max(1, to - from), CALLS - 4);
    pen.fillStyle = colours["--ink"];
    label(`@${call.function}${call.outcome === "returned" ? "" : ` ${call.outcome}`}`, from, to, AXIS + 13);
  });
}

/** The first step of the memory's level that begins behind a moment. */
function memoryStep(ns) {
  const at = data.memory.at_ns;
  let low = 0, high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] <= ns) low = middle + 1; else high = middle;
  }
  return low;
}

function drawMemory() {
  const memory = data.memory;
  if (!memory) return;
  const top = memoryTop(), base = top + MEMORY - 14, room = MEMORY - 40;
  const y = (value) => base - (value / Math.max(1, memory.peak)) * room;
  pen.fillStyle = colours["--line"];
  pen.fillRect(0, top, width, 1);
  pen.fillRect(gutter, base, width - gutter, 1);
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  pen.fillStyle = colours["--soft"];
  pen.fillText("live bytes", 12, top + 18);
  const right = (text, at) => pen.fillText(text, gutter - 8 - pen.measureText(text).width, at);
  if (memory.peak) right(bytes(memory.peak), y(memory.peak) + 4);
  right("0", base + 4);
  let step = memoryStep(view.from);
  let value = step > 0 ? memory.last[step - 1] : 0, from = gutter;
  const area = (to, max, min) => {
    pen.fillStyle = colours.memory;
    pen.fillRect(from, y(max), Math.max(1, to - from), base - y(max));
    pen.fillStyle = colours["--c2"];
    pen.fillRect(from, y(max), Math.max(1, to - from), Math.max(1.5, y(min) - y(max)));
  };
  while (step < memory.at_ns.length && memory.at_ns[step] <= view.to) {
    const column = Math.max(gutter, Math.floor(x(memory.at_ns[step])));
    if (column > from) area(column, value, value);
    from = column;
    let max = value, min = value;
    while (step < memory.at_ns.length && x(memory.at_ns[step]) < column + 1) {
      max = Math.max(max, memory.max[step]);
      min = Math.min(min, memory.min[step]);
      value = memory.last[step++];
    }
    area(column + 1, max, min);
    from = column + 1;
  }
  if (view.from < end_ns && from < width) area(Math.min(width, x(Math.max(view.from, Math.min(view.to, data.end_ns)))), value, value);
  const peak = x(memory.peak_at_ns);
  if (memory.peak && peak >= gutter && peak <= width) {
    pen.fillStyle = colours["--critical"];
    pen.beginPath();
    pen.arc(peak, y(memory.peak), 4, 0, 7);
    pen.fill();
    const text = `peak ${bytes(memory.peak)}`;
    const room = pen.measureText(text).width;
    pen.fillStyle = colours["--ink"];
    pen.fillText(text, peak + 8 + room < width ? peak + 8 : peak - 8 - room, y(memory.peak) - 6);
  }
}

function drawTimeline() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["--ink", "--soft", "--line", "--raised", "--task", "--several", "--other", "--critical", "--panel", ...Array.from({ length: N_COLOURS }, (_, i) => `--c${i}`)]) {
    colours[name] = style.getPropertyValue(name).trim();
  }
  const isDark = document.documentElement.dataset.scheme === "dark";
  colours.onKernel = isDark ? "#0d1114" : "#ffffff";
  colours.memory = isDark ? "rgba(53,185,162,.22)" : "rgba(28,156,134,.18)";
  colours["--failed"] = isDark ? "#5a2730" : "#f6cfd2";
  width = canvas.parentElement.clientWidth;
  gutter = Math.round(Math.min(160, Math.max(104, width * 0.12)));
  const height = canvasHeight(), ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = colours["--panel"];
  pen.fillRect(0, 0, width, height);
  drawAxis(height);
  drawCalls();
  shownThreads.forEach(drawThread);
  drawMemory();
  byId("window").textContent = `${time(Math.max(0, view.from - begin_ns))} – ${time(Math.max(0, view.to - begin_ns))}`;
}

function setView(from, to) {
  const all = [begin_ns - margin, end_ns + margin];
  const length = Math.min(all[1] - all[0], Math.max(20, to - from));
  view.from = Math.max(all[0], Math.min(all[1] - length, from));
  view.to = view.from + length;
  drawTimeline();
}

function zoom(by, around = (view.from + view.to) / 2) {
  setView(around - (around - view.from) * by, around + (view.to - around) * by);
}

const move = (by) => setView(view.from + by * (view.to - view.from), view.to + by * (view.to - view.from));

/** What is under the pointer: texts for the tip, and the kernel if it is one. */
function under(px, py) {
  const ns = nsAt(px), slack = (view.to - view.from) / Math.max(1, width - gutter);
  if (px < gutter) return null;
  if (data.memory && py >= memoryTop()) {
    const step = memoryStep(ns);
    const value = step > 0 ? data.memory.last[step - 1] : 0;
    return { texts: [bytes(value), `live at ${time(Math.max(0, ns - begin_ns))}`] };
  }
  const row = Math.floor((py - threadTop(0)) / THREAD);
  if (row < 0) {
    const call = data.calls.find((call) => call.begin_ns <= ns + slack && ns - slack <= call.end_ns);
    return call && { texts: [`@${call.function}`, `${call.outcome} after ${time(call.end_ns - call.begin_ns)}`] };
  }
  const thread = shownThreads[row];
  if (!thread) return null;
  const found = (marks) => {
    const at = lastBefore(thread, marks, ns + slack);
    return at >= 0 && thread.at[marks[at]] + thread.took[marks[at]] >= ns - slack ? marks[at] : -1;
  };
  const when = (mark) => `${time(thread.took[mark])}, from ${time(Math.max(0, thread.at[mark] - begin_ns))} on, on ${thread.name}`;
  const inKernel = (py - threadTop(row)) >= KERNEL_TOP - 1;
  let mark = found(thread.kernelMarks);
  if (inKernel && mark >= 0) {
    const kernel = kernelOfMark(thread.what[mark]), n = Math.abs(thread.many[mark]);
    if (kernel < 0) return { texts: [plural(n, "kernel"), when(mark), "short ones, close together"] };
    const [title, place, ...rest] = kernelTip(kernel);
    return { kernel, texts: [thread.what[mark] <= PART ? `${n > 1 ? plural(n, "part") : "part"} of ${title}` : n > 1 ? `${count(n)} × ${title}` : title, when(mark), place, thread.many[mark] < 0 && "on the critical path", ...rest] };
  }
  mark = found(thread.stealMarks);
  if (mark >= 0) return { texts: ["steal", `${plural(Math.abs(thread.many[mark]), "task")} taken from another thread`] };
  mark = found(thread.taskMarks);
  if (mark >= 0) return { texts: [Math.abs(thread.many[mark]) > 1 ? plural(Math.abs(thread.many[mark]), "task") : "task", when(mark)] };
  mark = found(thread.sleepMarks);
  if (mark >= 0) return { texts: ["asleep", when(mark)] };
  return null;
}

function listen() {
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    grip = { x: event.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip && (grip.moved || Math.abs(event.offsetX - grip.x) > 3)) {
      grip.moved = true;
      canvas.classList.add("moving");
      hideTip();
      const by = ((grip.x - event.offsetX) / (width - gutter)) * (grip.to - grip.from);
      return setView(grip.from + by, grip.to + by);
    }
    const found = under(event.offsetX, event.offsetY);
    if (found) showTip(event.clientX, event.clientY, found.texts); else hideTip();
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = grip && !grip.moved && under(event.offsetX, event.offsetY);
    grip = null;
    canvas.classList.remove("moving");
    if (clicked && clicked.kernel != null) showLine(kernels.line[clicked.kernel]);
  });
  canvas.addEventListener("pointercancel", () => { grip = null; canvas.classList.remove("moving"); });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", (event) => zoom(event.shiftKey ? 3 : 1 / 3, nsAt(event.offsetX)));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.004), nsAt(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      move(((event.deltaX || event.deltaY) / Math.max(1, width - gutter)));
    }
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const keys = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => setView(-Infinity, Infinity), w: () => zoom(0.6), s: () => zoom(1 / 0.6), a: () => move(-0.2), d: () => move(0.2) };
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
    if (!act) return;
    event.preventDefault();
    if (event.key === "0") all(); else act();
  });
}

const all = () => setView(begin_ns - margin, end_ns + margin);

function timeline() {
  const choose = (n) => { shownThreads = threads.slice(0, n); };
  choose(MAX_THREADS);
  const tools = byId("timeline-tools");
  tools.append(h("span", { id: "window", class: "soft", "aria-live": "polite" }));
  const button = (text, name, act) => h("button", { type: "button", "aria-label": name, title: name, onclick: act }, text);
  if (threads.length > MAX_THREADS) {
    const more = button(plural(threads.length - MAX_THREADS, "more thread"), "Show all threads", () => { choose(Infinity); more.remove(); drawTimeline(); });
    tools.append(more);
  }
  tools.append(button("←", "Earlier", () => move(-0.3)), button("→", "Later", () => move(0.3)),
    button("−", "Zoom out", () => zoom(2)), button("+", "Zoom in", () => zoom(0.5)), button("All", "Show all", all));
  canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Timeline of the threads, and live bytes under it. Arrows move, plus and minus zoom, 0 shows all." });
  byId("timeline-panel").append(canvas);
  listen();
  all();
  redraws.push(drawTimeline);
  let lastWidth = width;
  addEventListener("resize", () => {
    if (canvas.parentElement.clientWidth !== lastWidth) drawTimeline();
    lastWidth = width;
  });
}
