// The graph, folded by scope: boxes that open, with what the end waited for outlined.

/** A box shows this many nodes at most; more are folded into groups. */
const MAX_NODES = 36;
const MAX_GROUPS = 24;
/** Kernels of one name in a row that are folded into one node. */
const MIN_REPEAT = 4;

const childScopes = new Map();
scopes.forEach((scope, index) => {
  const key = scope.parent == null ? "root" : `${scope.parent}:${scope.kernel}`;
  if (!childScopes.has(key)) childScopes.set(key, []);
  childScopes.get(key).push(index);
  scope.byKernel = new Map();
  scope.total = 0;
  scope.criticalTotal = 0;
  for (let at = 0; at < scope.rows.length; at += 4) {
    const [kernel, runs, own, critical] = scope.rows.slice(at, at + 4);
    scope.byKernel.set(kernel, { runs, own, critical });
    scope.total += own;
    scope.criticalTotal += critical;
  }
  scope.rows = null;
});
// Parents come before their children.
for (let index = scopes.length - 1; index >= 0; index--) {
  const { parent, total, criticalTotal } = scopes[index];
  if (parent == null) continue;
  scopes[parent].total += total;
  scopes[parent].criticalTotal += criticalTotal;
}
const graphTotal = Math.max(1, sum((childScopes.get("root") || []).map((scope) => scopes[scope].total)));

const criticalSteps = functions.map(({ critical }) => {
  const steps = new Set();
  for (let at = 0; at < critical.length; at += 2) steps.add(`${critical[at]}>${critical[at + 1]}`);
  return steps;
});

/** A node for a scope: a function as it was called from one place. */
function scopeNode(index) {
  const scope = scopes[index];
  return {
    id: `s${index}`, title: functionName(scope.function), colour: null,
    note: `${time(scope.total)}, ${plural(scope.calls, "call")}`,
    total: scope.total, critical: scope.criticalTotal > 0, never: false, kernel: null,
    content: () => scopeContent(index, Array.from({ length: functions[scope.function].n }, (_, kernel) => kernel), `s${index}`),
  };
}

/** A node for a kernel in a scope, which opens if it calls functions. */
function kernelNode(index, kernel) {
  const scope = scopes[index], own = scope.byKernel.get(kernel);
  const number = functions[scope.function].first + kernel;
  const children = childScopes.get(`${index}:${kernel}`) || [];
  const total = (own ? own.own : 0) + sum(children.map((child) => scopes[child].total));
  const critical = (own && own.critical > 0) || children.some((child) => scopes[child].criticalTotal > 0);
  const note = own ? `${time(total)}${own.runs > 1 ? `, ${plural(own.runs, "run")}` : ""}` : "never ran";
  const node = { id: `s${index}k${kernel}`, title: names[kernels.name[number]], note, total, critical, never: !own, kernel: number, colour: kernelColour(number), content: null };
  if (children.length === 1) {
    node.callee = functionName(scopes[children[0]].function);
    node.content = scopeNode(children[0]).content;
  } else if (children.length) {
    node.callee = plural(children.length, "function");
    node.content = () => ({ nodes: children.map(scopeNode), edges: [] });
  }
  return node;
}

/** A node for several kernels of a scope that stand one behind the other. */
function groupNode(index, items, prefix, name) {
  const nodes = items.map((kernel) => kernelNode(index, kernel));
  const total = sum(nodes.map((node) => node.total));
  const first = functions[scopes[index].function].first;
  const places = items.map((kernel) => lines.line[kernels.line[first + kernel]]).filter((line) => line > 0);
  // Not all as arguments of a call: there may be more than a browser takes.
  const [least, most] = places.reduce(([least, most], line) => [Math.min(least, line), Math.max(most, line)], [Infinity, 0]);
  const where = places.length ? `lines ${least}–${most}` : `numbers ${items[0]}–${items[items.length - 1]}`;
  return {
    id: `${prefix}g${items[0]}`, title: name ? `${count(items.length)} × ${name}` : where,
    note: name ? `${time(total)}, ${where}` : `${plural(items.length, "kernel")}, ${time(total)}`, total, critical: nodes.some((node) => node.critical), never: nodes.every((node) => node.never),
    kernel: null, colour: name ? nodes[0].colour : null,
    content: () => scopeContent(index, items, `${prefix}g${items[0]}`, true),
  };
}

/** Kernels in a row as a few nodes: alone, repeated, or by stretches. */
function folded(index, items, isInside) {
  if (items.length <= MAX_NODES) return items.map((kernel) => [kernel]);
  const first = functions[scopes[index].function].first;
  const nameOf = (kernel) => kernels.name[first + kernel];
  let groups = [];
  for (let at = 0; at < items.length;) {
    let end = at + 1;
    while (end < items.length && nameOf(items[end]) === nameOf(items[at])) end++;
    const isAll = isInside && end - at === items.length;
    if (end - at >= MIN_REPEAT && !isAll) groups.push(items.slice(at, end));
    else for (let one = at; one < end; one++) groups.push([items[one]]);
    at = end;
  }
  if (groups.length <= MAX_NODES) return groups;
  const size = Math.ceil(items.length / MAX_GROUPS);
  groups = [];
  for (let at = 0; at < items.length; at += size) groups.push(items.slice(at, at + size));
  return groups;
}

/** The nodes of a box, and the edges between them. */
function scopeContent(index, items, prefix, isInside) {
  const groups = folded(index, items, isInside);
  const { producers, first } = functions[scopes[index].function];
  const steps = criticalSteps[scopes[index].function];
  const nodeOf = new Map();
  const nodes = groups.map((group, at) => {
    group.forEach((kernel) => nodeOf.set(kernel, at));
    if (group.length === 1) return kernelNode(index, group[0]);
    const name = kernels.name[first + group[0]];
    const isOfOne = group.every((kernel) => kernels.name[first + kernel] === name);
    return groupNode(index, group, prefix, isOfOne ? names[name] : null);
  });
  const edges = new Map();
  for (const kernel of items) {
    for (const producer of producers[kernel]) {
      const from = nodeOf.get(producer), to = nodeOf.get(kernel);
      if (from == null || from === to) continue;
      const isCritical = nodes[from].critical && nodes[to].critical && steps.has(`${producer}>${kernel}`);
      const key = `${from}>${to}`;
      edges.set(key, { from, to, critical: isCritical || (edges.has(key) && edges.get(key).critical) });
    }
  }
  return { nodes, edges: [...edges.values()] };
}

const opened = new Set();
let graphBox;

function rootContent() {
  const roots = childScopes.get("root") || [];
  const byTime = roots.slice().sort((a, b) => scopes[b].total - scopes[a].total);
  return { nodes: byTime.slice(0, 200).map(scopeNode), edges: [] };
}

/** Opens boxes below `content` for which `wants` says so, until there are enough. */
function openWhere(content, wants, left = { nodes: 300 }) {
  for (const node of content.nodes) {
    if (!node.content || left.nodes <= 0 || !wants(node)) continue;
    opened.add(node.id);
    const inside = node.content();
    left.nodes -= inside.nodes.length;
    openWhere(inside, wants, left);
  }
}

function drawGraph(focus) {
  const placed = layout(rootContent(), opened, Math.max(560, graphBox.clientWidth - 40));
  const root = h("div", { class: "canvas", style: `width:${placed.width}px;height:${placed.height}px` });
  fill(root, placed, 0);
  const scroll = [graphBox.scrollLeft, graphBox.scrollTop];
  graphBox.replaceChildren(root);
  [graphBox.scrollLeft, graphBox.scrollTop] = scroll;
  const again = focus && graphBox.querySelector(`[data-id="${focus}"]`);
  if (again) again.focus({ preventScroll: true });
}

function toggle(id) {
  if (!opened.delete(id)) opened.add(id);
  drawGraph(id);
}

const SVG = "http://www.w3.org/2000/svg";
function edgePaths(placed) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", placed.width);
  svg.setAttribute("height", placed.height);
  svg.setAttribute("aria-hidden", "true");
  const sorted = placed.edges.slice().sort((a, b) => a.critical - b.critical);
  for (const { from, to, critical } of sorted) {
    const a = placed.nodes[from], b = placed.nodes[to];
    const [x1, y1, x2, y2] = [a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y];
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M${x1} ${y1}${curve(x1, y1, x2, y2, placed.nodes)}`);
    if (critical) path.setAttribute("class", "critical");
    svg.append(path);
  }
  return svg;
}

/** A curve downwards; around what stands in the way, on the side where that is shorter. */
function curve(x1, y1, x2, y2, nodes) {
  const middle = (x1 + x2) / 2;
  const inTheWay = nodes.filter((one) => one.y > y1 && one.y + one.height < y2 && one.x < middle && middle < one.x + one.width);
  if (!inTheWay.length) {
    const bend = Math.max(14, Math.abs(y2 - y1) / 2);
    return `C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  }
  const left = Math.min(...inTheWay.map((one) => one.x)) - GAP_X / 2;
  const right = Math.max(...inTheWay.map((one) => one.x + one.width)) + GAP_X / 2;
  const side = middle - left < right - middle ? left : right;
  const [top, bottom] = [inTheWay[0].y, inTheWay[inTheWay.length - 1].y + inTheWay[inTheWay.length - 1].height];
  const bend = GAP_Y * 0.8;
  return `C${x1} ${y1 + bend} ${side} ${top - bend} ${side} ${top}L${side} ${bottom}C${side} ${bottom + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function fill(parent, placed, depth) {
  parent.append(edgePaths(placed));
  for (const { node, x, y, width, height, inside } of placed.nodes) {
    const classes = ["node", node.content ? "box" : "leaf"];
    if (depth % 2) classes.push("odd");
    if (node.critical) classes.push("critical");
    if (node.never) classes.push("never");
    const style = `left:${x}px;top:${y}px;width:${width}px;height:${height}px;${node.colour ? `--colour:${node.colour};` : ""}`;
    const title = node.callee ? `${node.title} → ${node.callee}` : node.title;
    const texts = [
      h("span", { class: "text mono" }, node.content ? `${inside ? "▾" : "▸"} ${title}` : title),
      h("span", { class: "text note" }, node.note),
    ];
    const share = h("i", { class: "fill", style: `width:${Math.min(100, (100 * node.total) / graphTotal)}%` });
    const hover = {
      onpointermove: (event) => showTip(event.clientX, event.clientY, node.kernel == null ? [title, node.note, percent(node.total / graphTotal)] : [...kernelTip(node.kernel), `here: ${node.note}`]),
      onpointerleave: hideTip,
    };
    if (!node.content) {
      parent.append(h("button", { class: classes.join(" "), type: "button", style, ...hover, onclick: () => { hideTip(); showLine(kernels.line[node.kernel]); } }, ...texts, share));
      continue;
    }
    const head = h("button", { class: "toggle", type: "button", "data-id": node.id, "aria-expanded": String(!!inside), ...hover, onclick: () => { hideTip(); toggle(node.id); } }, ...texts);
    const box = h("div", { class: classes.join(" "), style }, head);
    if (inside) {
      const holder = h("div", { style: `position:absolute;left:${PADDING}px;top:${HEAD}px;width:${inside.width}px;height:${inside.height}px` });
      fill(holder, inside, depth + 1);
      box.append(holder);
    } else {
      box.append(share);
    }
    parent.append(box);
  }
}

function graph() {
  graphBox = h("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Graph" });
  byId("graph-panel").append(graphBox);
  if (!scopes.length) return graphBox.append(h("p", { class: "empty" }, "No kernel ran, so that there is no graph."));
  const root = rootContent();
  openWhere({ nodes: root.nodes.slice(0, 1) }, (node) => node.total >= 0.25 * graphTotal && node.id.split("k").length < 4, { nodes: 60 });
  if (root.nodes.length) opened.add(root.nodes[0].id);
  const button = (text, act) => h("button", { type: "button", onclick: () => { act(); drawGraph(); } }, text);
  byId("graph-tools").append(
    button("Open the critical path", () => openWhere(rootContent(), (node) => node.critical)),
    button("Fold all", () => opened.clear()));
  drawGraph();
  let before = graphBox.clientWidth;
  addEventListener("resize", () => {
    if (graphBox.clientWidth !== before) drawGraph();
    before = graphBox.clientWidth;
  });
}
