// The map of partitions: draw over it to choose a range, which stands in the fields below; the arrow keys go through it.
// Keys that are not times are a list, of which one chooses some.
"use strict";

(() => {
  const cellOf = (target) => target.closest?.("#partitions [data-period]");
  const cells = () => [...document.querySelectorAll("#partitions [data-period]")];
  let first = null;
  let drawn = false;

  const choose = (last) => {
    const all = cells();
    const places = [all.indexOf(first), all.indexOf(last)].sort((a, b) => a - b);
    all.forEach((cell, place) => cell.classList.toggle("chosen", place >= places[0] && place <= places[1]));
    const list = document.getElementById("chosen-keys");
    if (list) {
      const keys = all.slice(places[0], places[1] + 1).map((cell) => cell.dataset.period);
      list.elements.keys.value = keys.join("\n");
      return;
    }
    const form = document.getElementById("range");
    form.elements.start.value = all[places[0]].dataset.period;
    form.elements.end.value = all[places[1]].dataset.period;
  };
  document.addEventListener("pointerdown", (event) => {
    drawn = false;
    first = event.button === 0 && document.querySelector("#range, #chosen-keys") ? cellOf(event.target) : null;
    // A finger scrolls the map; it chooses by the fields.
    if (first && event.pointerType === "touch") first = null;
  });
  document.addEventListener("pointerover", (event) => {
    const last = first && cellOf(event.target);
    if (!last || (last === first && !drawn)) return;
    drawn = true;
    first.closest(".calendar, .key-list").classList.add("drawing");
    choose(last);
  });
  document.addEventListener("pointerup", () => {
    document.querySelector(".drawing")?.classList.remove("drawing");
    first = null;
  });
  document.addEventListener("dragstart", (event) => first && event.preventDefault());
  // To let go over a link is not to open it.
  document.addEventListener("click", (event) => drawn && cellOf(event.target) && event.preventDefault(), true);

  // What was chosen, or is written into the fields, is not replaced by what is new.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const isBusy = first || document.querySelector("#partitions .chosen, #range :focus, #chosen-keys :focus");
    if (event.detail.elt.id === "partitions-now" && isBusy) event.preventDefault();
  });

  const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("a.cell") || !(event.key in STEPS)) return;
    event.preventDefault();
    const all = [...document.querySelectorAll("#partitions a.cell")];
    const next = Math.min(Math.max(all.indexOf(event.target) + STEPS[event.key], 0), all.length - 1);
    event.target.tabIndex = -1;
    all[next].tabIndex = 0;
    all[next].focus();
  });
})();
