// Uses the page as people do, and notes what is wrong with it.
"use strict";
{
  const wrong = [];
  const check = (what, ok) => { if (!ok) wrong.push(what); };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const overlap = (a, b) => {
    const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
    return p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1;
  };
  const separate = (elements, what) => elements.forEach((a, at) => {
    for (const b of elements.slice(at + 1)) check(`${what} overlap: ${a.textContent.slice(0, 30)}, ${b.textContent.slice(0, 30)}`, !overlap(a, b));
  });
  const boxes = () => new Set(all(".node").map((node) => node.parentElement));
  const nodesAreSeparate = () => boxes().forEach((box) => separate([...box.children].filter((child) => child.classList.contains("node")), "nodes"));
  const has = data.kernels.name.length > 0;

  check("something was loaded", performance.getEntriesByType("resource").length === 0);
  check("a name became a script", window.broken === undefined && all("img").length === 0);
  check("the page is wider than the window", document.documentElement.scrollWidth <= innerWidth);
  for (const element of all(".tile .value, .tile dt, nav a, .tools button, th")) {
    check(`clipped: ${element.textContent}`, element.scrollWidth <= element.clientWidth + 1);
  }
  separate([document.querySelector("h1"), document.querySelector("nav")], "head");
  separate(all(".tile"), "tiles");
  separate(all("main > section"), "sections");
  all(".columns, .heading").forEach((row) => separate([...row.children], "parts"));

  // The source.
  if (has) {
    check("no line has a time", all("#source .row").length > 1);
    for (const line of [0, data.lines.line.length >> 1, data.lines.line.length - 1]) {
      showLine(line);
      const row = document.querySelector(".row.target"), box = document.querySelector(".lines");
      check(`line ${line} is not shown`, row !== null);
      if (!row) continue;
      const place = row.getBoundingClientRect(), around = box.getBoundingClientRect();
      check(`line ${line} is out of sight`, place.top >= around.top && place.bottom <= around.bottom + 1);
    }
    const only = document.querySelector("#source-tools input");
    only.click();
    check("no line is left", all("#source .row").length > 1);
    only.click();
    all("#source-tools button").forEach((button) => button.click());
    for (const error of data.errors) {
      if (error.line >= 0) { showLine(error.line); check("an error is not marked", all(".row.failed, .failure").length >= 2); }
    }
  }

  // The timeline.
  const pixels = () => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    return pen.getImageData(0, 0, copy.width, copy.height).data;
  };
  const colours = () => {
    const seen = new Set(), bytes = pixels();
    for (let at = 0; at < bytes.length; at += 4) seen.add(bytes[at] << 16 | bytes[at + 1] << 8 | bytes[at + 2]);
    return seen.size;
  };
  const shown = () => byId("window").textContent;
  check("the timeline is empty", colours() > (has ? 8 : 2));
  const before = shown();
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
  for (const key of ["+", "+", "ArrowRight"]) press(key);
  check("keys do not zoom", shown() !== before);
  press("0");
  check("0 does not show all", shown() === before);
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, ctrlKey: true, cancelable: true }));
  check("the wheel does not zoom", shown() !== before);
  all("#timeline-tools button").forEach((button) => button.click());
  check("All does not show all", shown() === before);
  for (let n = 0; n < 40; n++) press("+");
  for (let n = 0; n < 80; n++) press("-");
  check("zooming in and out does not come back", shown() === before);
  let tips = 0;
  for (let y = 2; y < canvas.clientHeight; y += 7) {
    for (let x = 2; x < canvas.clientWidth; x += 9) {
      const found = under(x, y);
      if (!found) continue;
      tips++;
      check("a tip says nothing", found.texts.every((text) => !/undefined|NaN|Infinity/.test(String(text))));
    }
  }
  check("nothing can be pointed at", !has || tips > 10);

  // The graph.
  if (has) {
    check("the graph is empty", all(".node").length > 0);
    nodesAreSeparate();
    for (let turn = 0; turn < 3; turn++) {
      const closed = all(".toggle[aria-expanded=false]")[0];
      if (closed) closed.click();
    }
    nodesAreSeparate();
    const [open, fold] = all("#graph-tools button");
    open.click();
    check("nothing is critical", all(".node.critical").length > 0);
    check("too many nodes at once", all(".node").length < 1500);
    nodesAreSeparate();
    for (const node of all(".node")) {
      const parent = node.parentElement.closest(".node.box");
      if (!parent) continue;
      const [inner, outer] = [node.getBoundingClientRect(), parent.getBoundingClientRect()];
      check("a node stands out of its box", inner.left >= outer.left && inner.right <= outer.right && inner.bottom <= outer.bottom);
    }
    fold.click();
    check("fold does not fold", all(".toggle[aria-expanded=true]").length === 0);
  }

  // Light and dark.
  const was = pixels().slice(0, 4).join();
  byId("scheme").click();
  check("the timeline keeps its colours", pixels().slice(0, 4).join() !== was);
  byId("scheme").click();
  check("undefined is shown", !/undefined|NaN/.test(document.querySelector("main").innerText));

  document.documentElement.dataset.failures = String(failures.length);
  document.documentElement.dataset.wrong = [...new Set(wrong)].slice(0, 20).join("; ");
}
