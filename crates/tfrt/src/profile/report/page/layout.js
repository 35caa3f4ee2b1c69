// Where the nodes of the graph go: in layers, each below all that it takes values from.

const LEAF_WIDTH = 184, LEAF_HEIGHT = 46, HEAD = 46, PADDING = 12, GAP_X = 14, GAP_Y = 30;

/** Places the nodes of a box, and of those in it that are open. */
function layout({ nodes, edges }, opened, room) {
  const placed = nodes.map((node) => {
    const inside = node.content && opened.has(node.id) ? layout(node.content(), opened, room - 2 * PADDING) : null;
    return {
      node, inside, x: 0, y: 0,
      width: inside ? Math.max(LEAF_WIDTH + 2 * PADDING, inside.width + 2 * PADDING) : LEAF_WIDTH,
      height: inside ? HEAD + inside.height + PADDING : LEAF_HEIGHT,
    };
  });
  const rows = inRows(placed, edges, room);
  const width = Math.max(LEAF_WIDTH, ...rows.map(rowWidth));
  let y = 0;
  rows.forEach((row, index) => {
    if (index > 0) y += row.continues ? GAP_X : GAP_Y;
    let x = (width - rowWidth(row)) / 2;
    for (const one of row.members) {
      Object.assign(one, { x, y });
      x += one.width + GAP_X;
    }
    y += Math.max(...row.members.map((one) => one.height));
  });
  return { nodes: placed, edges, width, height: Math.max(y, 1) };
}

const rowWidth = (row) => sum(row.members.map((one) => one.width + GAP_X)) - GAP_X;

/** The layer of each node: one more than that of the last one it takes a value from. */
function layers(n, edges) {
  const layer = new Array(n).fill(0);
  const into = Array.from({ length: n }, () => []), outOf = Array.from({ length: n }, () => []);
  for (const { from, to } of edges) {
    // Nodes stand in the order of the file, in which producers come first.
    if (from >= to) continue;
    into[to].push(from);
    outOf[from].push(to);
  }
  for (let node = 0; node < n; node++) {
    for (const from of into[node]) layer[node] = Math.max(layer[node], layer[from] + 1);
  }
  // What needs nothing stands right above its first user.
  for (let node = 0; node < n; node++) {
    if (!into[node].length && outOf[node].length) layer[node] = Math.min(...outOf[node].map((to) => layer[to])) - 1;
  }
  return { layer, into };
}

/** Rows from top to bottom; a layer that is too wide takes several. */
function inRows(placed, edges, room) {
  const { layer, into } = layers(placed.length, edges);
  const byLayer = new Map();
  placed.forEach((one, node) => {
    if (!byLayer.has(layer[node])) byLayer.set(layer[node], []);
    byLayer.get(layer[node]).push(node);
  });
  const order = new Map();
  const rows = [];
  for (const [, members] of [...byLayer].sort((a, b) => a[0] - b[0])) {
    // Near to those above that they take values from.
    const key = (node) => (into[node].length ? sum(into[node].map((from) => order.get(from) ?? 0.5)) / into[node].length : 0.5);
    const keys = new Map(members.map((node) => [node, key(node)]));
    members.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    members.forEach((node, at) => order.set(node, (at + 0.5) / members.length));
    let row = null;
    for (const node of members) {
      const one = placed[node];
      if (!row || (row.width + GAP_X + one.width > room && row.members.length)) {
        rows.push(row = { members: [], width: -GAP_X, continues: row !== null });
      }
      row.members.push(one);
      row.width += GAP_X + one.width;
    }
  }
  return rows;
}
