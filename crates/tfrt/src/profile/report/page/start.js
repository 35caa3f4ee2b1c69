// Draws all views, and notes how that went for those who test the page.

for (const draw of [summary, source, timeline, graph]) {
  try {
    draw();
  } catch (error) {
    failures.push(String(error));
    byId("notices").append(h("p", { class: "notice error" }, `A part of this page could not be drawn: ${error.message}`));
    console.error(error);
  }
}
// So that the time includes the layout.
document.body.getBoundingClientRect();
document.documentElement.dataset.ready = performance.now().toFixed(1);
document.documentElement.dataset.failures = String(failures.length);
