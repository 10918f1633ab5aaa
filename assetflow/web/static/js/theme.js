// Before the page is drawn: the theme that was chosen, or that of the system.
"use strict";

(() => {
  // When the dark colours count.
  const MEDIA = { auto: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };
  const NAMES = Object.keys(MEDIA);
  const read = () => {
    try {
      const name = localStorage.getItem("assetflow-theme");
      return NAMES.includes(name) ? name : "auto";
    } catch {
      return "auto";
    }
  };
  const apply = (name) => {
    document.getElementById("dark").media = MEDIA[name];
    const label = document.getElementById("theme-name");
    if (label) label.textContent = name;
    document.dispatchEvent(new CustomEvent("theme"));
  };

  // What works with JavaScript only is shown from here on (base.css).
  document.documentElement.classList.add("scripts");
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
