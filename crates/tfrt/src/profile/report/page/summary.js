// The summary: what was measured, which kernels and threads took the time, what to mind.

function tiles() {
  const path = data.paths.slice().sort((a, b) => b.end_ns - b.begin_ns - (a.end_ns - a.begin_ns))[0];
  const ran = sum(ranked.map((row) => row.runs));
  const workers = threads.filter((thread) => thread.is_worker);
  const used = workers.length ? workers : threads;
  const busy = sum(used.map((thread) => thread.busy_ns));
  const n_used = Math.max(1, data.n_threads, used.length);
  const list = [
    ["Time", time(data.span_ns), "from the first kernel to the last"],
    ["Kernels run", count(ran), ran ? `${time(allOwn / ran)} each on average` : "none"],
  ];
  if (path) {
    const waiting = path.end_ns - path.begin_ns - path.busy_ns;
    const which = data.paths.length > 1 ? `the longest of ${data.paths.length}: ` : "";
    const note = `${which}${plural(path.kernels, "kernel")}, ${time(Math.max(0, waiting))} between them`;
    list.push(["Critical path", time(path.busy_ns), note]);
  }
  const use = Math.min(1, busy / Math.max(1, n_used * data.span_ns));
  list.push([workers.length ? "Workers busy" : "Thread busy", percent(use), `of the time of ${plural(n_used, workers.length ? "worker" : "thread")}`]);
  if (data.memory) {
    const { peak, allocations } = data.memory;
    list.push(["Memory at the peak", bytes(peak), `${plural(allocations, "allocation")}`]);
  }
  if (data.errors.length) list.push(["Errors", count(data.errors.length), "marked on their lines"]);
  byId("tiles").append(...list.map(([name, value, note]) => h("div", { class: "tile" },
    h("dt", {}, name), h("dd", { class: "value" }, value), h("dd", { class: "note" }, note))));
}

function notices() {
  const list = [];
  for (const error of data.errors.slice(0, 5)) {
    const show = error.line >= 0 && h("button", { type: "button", onclick: () => showLine(error.line) }, placeName(error.line));
    const kernel = error.kernel ? `${error.kernel}: ` : "";
    list.push(h("p", { class: "notice error" }, `${kernel}${error.message}`, show || null));
  }
  if (data.errors.length > 5) list.push(h("p", { class: "notice error" }, `and ${data.errors.length - 5} more errors`));
  if (data.lost_events) {
    list.push(h("p", { class: "notice" }, `The recording was full: ${plural(data.lost_events, "event")} at the beginning gave way to later ones, so that times and counts are those of the rest.`));
  }
  if (data.merged_below_ns) {
    list.push(h("p", { class: "notice" }, `In the timeline, what is shorter than ${time(data.merged_below_ns)} and close together is drawn as one. All else counts every kernel.`));
  }
  if (data.scopes_are_shared) {
    list.push(h("p", { class: "notice" }, "Too many ways lead to some functions to tell them apart: in the graph their calls are shown together, as boxes of their own."));
  }
  byId("notices").append(...list);
}

function kernelTable() {
  const SHOWN = 10;
  const body = h("tbody");
  const row = ({ name, index, runs, own, longest, critical }) => h("tr", {},
    h("td", { class: "name", title: name }, h("span", { class: "swatch", style: `background:var(${colourName(colourOf[index])})` }), name),
    h("td", {}, count(runs)), h("td", {}, time(own)), h("td", {}, time(own / runs)), h("td", {}, time(longest)),
    h("td", {}, critical ? time(critical) : "–"),
    h("td", {}, percent(own / allOwn), h("span", { class: "share" }, h("i", { style: `width:${100 * own / allOwn}%` }))));
  body.append(...ranked.slice(0, SHOWN).map(row));
  const head = ["Kernel", "runs", "total", "mean", "longest", "critical", "share"];
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))), body);
  const panel = byId("kernels");
  if (!ranked.length) return panel.append(h("p", { class: "soft" }, "No kernel ran."));
  panel.append(table);
  if (ranked.length > SHOWN) {
    const more = h("button", { type: "button", class: "more", onclick: () => {
      body.append(...ranked.slice(SHOWN).map(row));
      more.remove();
    } }, `${ranked.length - SHOWN} more`);
    panel.append(more);
  }
}

function threadList() {
  const legend = h("div", { class: "legend" },
    h("span", { class: "box", style: "background:var(--c0)" }), "busy",
    h("span", { class: "box", style: "background:repeating-linear-gradient(45deg,var(--several) 0 3px,transparent 3px 6px)" }), "asleep",
    h("span", { class: "box", style: "background:var(--raised)" }), "idle or elsewhere");
  const SHOWN = 5;
  const list = threads.map((thread) => {
    const all = Math.max(1, thread.busy_ns + thread.idle_ns);
    const notes = [plural(thread.kernels, "kernel"), plural(thread.tasks, "task")];
    if (thread.steals) notes.push(plural(thread.steals, "steal"));
    if (thread.parks) notes.push(`slept ${plural(thread.parks, "time")}`);
    if (thread.lost_events) notes.push(`${plural(thread.lost_events, "event")} lost`);
    return h("div", { class: "thread" },
      h("div", { class: "head" }, h("span", { class: "label" }, thread.name), h("span", {}, `${time(thread.busy_ns)} busy`)),
      h("div", { class: "stack", role: "img", "aria-label": `busy ${percent(thread.busy_ns / all)}, asleep ${percent(thread.asleep_ns / all)}` },
        h("span", { class: "busy", style: `width:${100 * thread.busy_ns / all}%` }),
        h("span", { class: "asleep", style: `width:${100 * Math.min(thread.asleep_ns, thread.idle_ns) / all}%` })),
      h("div", { class: "note" }, notes.join(" · ")));
  });
  const panel = byId("threads");
  panel.append(h("h3", {}, data.queue), ...list.slice(0, SHOWN), legend);
  if (list.length > SHOWN) {
    const rest = threads.slice(SHOWN);
    const more = h("button", { type: "button", class: "more", onclick: () => {
      legend.before(...list.slice(SHOWN));
      more.remove();
    } }, `${plural(rest.length, "more thread")}, ${time(sum(rest.map((thread) => thread.busy_ns)))} busy`);
    panel.append(more);
  }
}

function summary() {
  byId("name").textContent = data.name;
  document.title = `${data.name.split("/").pop()} – tfrt profile`;
  notices();
  tiles();
  kernelTable();
  threadList();
  byId("scheme").addEventListener("click", () => {
    setScheme(document.documentElement.dataset.scheme === "dark" ? "light" : "dark");
  });
}
