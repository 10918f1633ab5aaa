// Before the page is drawn: the theme that was chosen, or that of the system.
"use strict";

(() => {
  const NAMES = ["auto", "light", "dark"];
  const read = () => {
    try {
      return localStorage.getItem("assetflow-theme") || "auto";
    } catch {
      return "auto";
    }
  };
  const apply = (name) => {
    document.documentElement.dataset.theme = NAMES.includes(name) ? name : "auto";
    const label = document.getElementById("theme-name");
    if (label) label.textContent = name;
    document.dispatchEvent(new CustomEvent("theme"));
  };

  apply(read());
  document.addEventListener("DOMContentLoaded", () => {
    apply(read());
    document.getElementById("theme").addEventListener("click", () => {
      const next = NAMES[(NAMES.indexOf(read()) + 1) % NAMES.length];
      try {
        localStorage.setItem("assetflow-theme", next);
      } catch {
        // Not kept, as this browser wants it.
      }
      apply(next);
    });
  });
})();
