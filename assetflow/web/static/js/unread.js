// While somebody reads the list, new rows wait: a button says how many there are.
"use strict";

(() => {
  // The part that reloads; its attribute selects the rows of the list in it.
  const part = document.querySelector("[data-unread]");
  const rows = part.dataset.unread;
  const listOf = () => part.querySelector(rows)?.parentElement;
  const button = document.querySelector("#unread button");
  let wanted = false;

  const reads = () => {
    const selection = getSelection();
    const list = listOf();
    const selects = !selection.isCollapsed && list?.contains(selection.anchorNode);
    return selects || list?.getBoundingClientRect().top < 0;
  };
  const isNew = (row) => !document.getElementById(row.id);
  const refresh = () => {
    wanted = true;
    document.body.dispatchEvent(new CustomEvent("live-events"));
  };

  part.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== part) return;
    const { requestConfig, serverResponse } = event.detail;
    // What the reader asked for, as with the filters, comes at once.
    const isAsked = wanted || !part.contains(requestConfig.elt);
    const page = new DOMParser().parseFromString(serverResponse, "text/html");
    const number = [...page.querySelectorAll(rows)].filter(isNew).length;
    event.detail.shouldSwap &&= isAsked || number === 0 || !reads();
    button.hidden = event.detail.shouldSwap;
    if (!button.hidden) button.textContent = `${number} new`;
    wanted = false;
  });
  button.addEventListener("click", () => {
    listOf()?.scrollIntoView();
    // The button goes; the keyboard goes on where the new rows are.
    part.focus({ preventScroll: true });
    refresh();
  });
  const goOn = () => button.hidden || reads() || refresh();
  document.addEventListener("selectionchange", goOn);
  document.addEventListener("scroll", goOn, { passive: true });
})();
