// What every page does in the browser: live changes, times that grow old, dialogs, and a word when something fails.
"use strict";

(() => {
  const body = document.body;

  // Changes come as events of the body (`live-events`, …), which parts of pages name in hx-trigger. A page that nobody
  // sees has no stream, because a browser opens only a few of them; when it is seen again, it catches up.
  const KINDS = ["assets", "events", "decisions", "troubles"];
  const words = document.getElementById("live-words");
  const place = document.getElementById("live");
  let source = null;
  let wasOpen = false;

  const say = (state, text) => {
    place.dataset.state = state;
    if (words.textContent !== text) words.textContent = text;
  };
  // The page is told of changes, but nothing runs where the banners at the top say so.
  const sayLive = () => {
    const trouble = document.querySelector("#troubles [data-live]");
    say(trouble ? "trouble" : "on", trouble ? `Live, ${trouble.dataset.live}` : "Live");
  };
  const tell = (kind) => body.dispatchEvent(new CustomEvent(`live-${kind}`));

  // What was committed after the page was made, and before the stream begins, is told first.
  const { live, seen } = body.dataset;
  const address = seen ? `${live}${live.includes("?") ? "&" : "?"}seen=${seen}` : live;

  const open = () => {
    if (source || !body.dataset.live) return;
    source = new EventSource(address);
    source.onopen = () => {
      sayLive();
      if (wasOpen) KINDS.forEach(tell);
      wasOpen = true;
    };
    source.onerror = () => {
      say("off", "Not connected");
      if (source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(() => document.hidden || open(), 5000);
      }
    };
    KINDS.forEach((kind) => source.addEventListener(kind, () => tell(kind)));
  };
  const close = () => {
    if (source) source.close();
    source = null;
  };

  if (body.dataset.live) {
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", open);
    if (!document.hidden) open();
  } else {
    place.hidden = true;
  }

  // Times, in the same words as the server's.
  const ago = (then) => {
    const seconds = (Date.now() - then) / 1000;
    if (seconds < 0) return null;
    for (const [size, unit, name] of [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"]]) {
      if (seconds < size) return `${Math.floor(seconds / unit)} ${name} ago`;
    }
    const days = Math.floor(seconds / 86400);
    return days < 30 ? `${days} d ago` : null;
  };
  const until = (then) => {
    const seconds = (then - Date.now()) / 1000;
    if (seconds < 0) return null;
    for (const [size, unit, name] of [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"]]) {
      if (seconds < size) return `in ${Math.floor(seconds / unit)} ${name}`;
    }
    return `in ${Math.floor(seconds / 86400)} d`;
  };
  // In local time, or in UTC, as the reader chose.
  const ZONE = "assetflow-zone";
  const isUtc = () => {
    try {
      return localStorage.getItem(ZONE) === "UTC";
    } catch {
      return false;
    }
  };
  const clock = (then, utc) => {
    const local = new Date(then - new Date(then).getTimezoneOffset() * 60000);
    const text = (utc ? new Date(then) : local).toISOString().slice(0, 19).replace("T", " ");
    return utc ? `${text} UTC` : text;
  };
  // A time to explain is typed in the zone that is shown, and sent in UTC. Without scripts it is typed in UTC.
  const typed = document.getElementById("field-at");
  let typedInUtc = true;
  const instant = () => Date.parse(typedInUtc ? `${typed.value}Z` : typed.value);
  const convert = (utc) => {
    if (!typed || utc === typedInUtc) return;
    if (typed.value) typed.value = clock(instant(), utc).slice(0, 19).replace(" ", "T");
    typedInUtc = utc;
    document.getElementById("zone-of-at").textContent = utc ? "UTC" : "local";
  };
  typed?.form.addEventListener("formdata", ({ formData }) => {
    formData.set("at", new Date(instant()).toISOString());
  });
  const grow = () => {
    const utc = isUtc();
    document.getElementById("zone-name").textContent = utc ? "UTC" : "local";
    convert(utc);
    document.querySelectorAll("time[data-at], time[data-ago]").forEach((time) => {
      const then = Date.parse(time.dateTime);
      if (Number.isNaN(then)) return;
      time.title = `${clock(then, utc)}, ${clock(then, !utc)}`;
      if (!("at" in time.dataset)) return;
      const age = ago(then) || until(then);
      const text = clock(then, utc) + (age ? ` (${age})` : "");
      if (text !== time.textContent) time.textContent = text;
    });
    document.querySelectorAll("time[data-ago]").forEach((time) => {
      const text = ago(Date.parse(time.dateTime));
      if (text && text !== time.textContent) time.textContent = text;
    });
  };
  // The exact time is also for those who do not hover: a press shows it, and so does the focus (parts.css).
  const reach = () => {
    document.querySelectorAll(".facts time[data-ago]:not(a *)").forEach((time) => {
      time.tabIndex = 0;
    });
  };
  document.addEventListener("click", (event) => {
    const time = event.target.closest("time[data-ago]");
    if (time && !time.closest("a")) time.classList.toggle("exact");
  });
  setInterval(grow, 10000);
  grow();
  reach();
  document.getElementById("zone").addEventListener("click", () => {
    try {
      localStorage.setItem(ZONE, isUtc() ? "local" : "UTC");
    } catch {
      // Not kept, as this browser wants it.
    }
    grow();
  });

  // A row is pressed as its first link is, unless something in it was selected or has an action of its own.
  document.addEventListener("click", (event) => {
    const row = event.target.closest("table.rows tbody tr, .happened > li");
    if (!row || event.target.closest("a, button, input, select, label, summary, time") || String(getSelection())) return;
    const link = row.querySelector('a[href]:not([role="button"])');
    if (link) link.click();
  });

  // <a data-opens="id"> opens the dialog with this id; one that says data-open is open from the start, because the
  // address is its own, or its form was refused. The focus is where autofocus says: on the first wrong field.
  document.querySelectorAll("dialog[data-open]").forEach((dialog) => {
    dialog.open = false;
    dialog.showModal();
  });
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const opener = event.target.closest("[data-opens]");
    if (opener) {
      event.preventDefault();
      const dialog = document.getElementById(opener.dataset.opens);
      dialog.showModal();
      // htmx listens only when the whole page is there; a dialog may be opened before.
      const tellOpened = () => dialog.dispatchEvent(new CustomEvent("opened"));
      if (document.readyState === "complete") tellOpened();
      else window.addEventListener("load", tellOpened, { once: true });
    }
    const closer = event.target.closest("[data-closes]");
    if (closer) {
      event.preventDefault();
      closer.closest("dialog").close();
    }
    if (event.target.tagName === "DIALOG") event.target.close();
  });
  // A link that acts as a button is pressed with the space bar too.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches('a[role="button"]')) return;
    event.preventDefault();
    event.target.click();
  });
  // Ctrl+K and Command+K search from everywhere; the arrows go through what is found, and Enter opens the first.
  const palette = document.getElementById("palette");
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!palette.open && !document.querySelector("dialog[open]")) palette.showModal();
    }
  });
  const query = palette.querySelector("input");
  let entered = false;
  // Enter waits for the hits of what is typed: those on the screen may be of a moment before.
  const openFirst = () => {
    const answer = palette.querySelector("[data-asked]");
    if (!entered || answer?.dataset.asked !== query.value.trim().replace(/\s+/g, " ")) return;
    const first = answer.querySelector("a");
    if (first) first.click(); else query.form.submit();
  };
  query.addEventListener("input", () => { entered = false; });
  palette.addEventListener("htmx:afterSettle", openFirst);
  ["htmx:responseError", "htmx:sendError"].forEach((failure) => {
    palette.addEventListener(failure, () => { if (entered) query.form.submit(); });
  });
  palette.addEventListener("keydown", (event) => {
    const found = [...palette.querySelectorAll(".hits a")];
    const place = found.indexOf(document.activeElement);
    if (event.key === "Enter" && place < 0) {
      event.preventDefault();
      entered = true;
      openFirst();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = place + (event.key === "ArrowDown" ? 1 : -1);
      (found[next] || query).focus();
    }
  });
  document.addEventListener("close", ({ target }) => {
    if (target.matches("dialog[data-open]")) history.replaceState(history.state, "", target.dataset.back);
  }, true);
  // A page that answers a form has the address of that form: a reload asks for it instead of sending the form again.
  // What was just done is said once: a reload does not say it again.
  const here = new URL(location.href);
  ["switched", "removed", "started", "retried", "replayed", "asked"].forEach((name) => here.searchParams.delete(name));
  history.replaceState(history.state, "", here);

  // On a narrow screen the navigation is one line: where we are is in sight.
  document.querySelector(".side nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

  // A form is sent once, also if the part of the page around it changes meanwhile.
  let sent = new WeakSet();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (sent.has(form)) event.preventDefault();
    sent.add(form);
  });
  window.addEventListener("pageshow", () => {
    sent = new WeakSet();
  });

  document.addEventListener("click", async ({ target }) => {
    if (!target.dataset.copies) return;
    const text = document.getElementById(target.dataset.copies);
    // A browser has no clipboard for a page without TLS on another host: there the text is selected.
    if (!navigator.clipboard) return getSelection().selectAllChildren(text);
    await navigator.clipboard.writeText(text.textContent);
    target.textContent = "Copied";
  });

  const toast = document.getElementById("toast");
  const fail = (text) => {
    toast.textContent = text;
    toast.hidden = false;
    setTimeout(() => (toast.hidden = true), 8000);
  };
  body.addEventListener("htmx:responseError", ({ detail }) => {
    if (detail.xhr.status !== 401) fail("The server could not answer; what you see may be old.");
    // What is being typed is kept: its form leads to the login too, and back.
    else if (document.querySelector("dialog[open] form[method=post]")) fail("Your login has expired. Send the form to log in again.");
    else location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  });
  body.addEventListener("htmx:sendError", () => fail("The server does not answer; what you see may be old."));
  body.addEventListener("htmx:timeout", () => fail("The server takes too long to answer."));
  body.addEventListener("htmx:afterSettle", () => {
    grow();
    reach();
    if (source && source.readyState === EventSource.OPEN) sayLive();
  });
  // What is being typed stays when the part of the page around it changes.
  Idiomorph.defaults.ignoreActiveValue = true;
  // What somebody has opened stays open.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, { localName }) => name !== "open" || localName !== "details";
})();
