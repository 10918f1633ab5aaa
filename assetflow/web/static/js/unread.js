// While somebody reads the list, new rows wait: a button says how many there are.
"use strict";

(() => {
  const list = document.getElementById("list");
  const button = document.querySelector("#unread button");
  let wanted = false;

  const reads = () => {
    const selection = getSelection();
    const selects = !selection.isCollapsed && list.contains(selection.anchorNode);
    return selects || list.getBoundingClientRect().top < 0;
  };
  const isNew = (row) => !document.getElementById(row.id);
  const refresh = () => {
    wanted = true;
    document.body.dispatchEvent(new CustomEvent("live-events"));
  };

  list.addEventListener("htmx:beforeSwap", (event) => {
    const { requestConfig, serverResponse } = event.detail;
    // What the reader asked for, as with the filters, comes at once.
    const isAsked = wanted || !list.contains(requestConfig.elt);
    const page = new DOMParser().parseFromString(serverResponse, "text/html");
    const number = [...page.querySelectorAll("li[id]")].filter(isNew).length;
    event.detail.shouldSwap &&= isAsked || number === 0 || !reads();
    button.hidden = event.detail.shouldSwap;
    if (!button.hidden) button.textContent = `${number} new`;
    wanted = false;
  });
  button.addEventListener("click", () => {
    list.scrollIntoView();
    // The button goes; the keyboard goes on at the newest row.
    list.focus({ preventScroll: true });
    refresh();
  });
  const goOn = () => button.hidden || reads() || refresh();
  document.addEventListener("selectionchange", goOn);
  document.addEventListener("scroll", goOn, { passive: true });
})();
