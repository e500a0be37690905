"use strict";
// A run that goes on: the server says when something was recorded, and the part that moves is fetched anew.
(() => {
  const live = document.getElementById("live");
  if (!live) return;
  const events = new EventSource(live.dataset.events);
  let waiting = false;
  const refresh = () => {
    // Not under the hands of somebody who is reading it by keyboard.
    if (live.contains(document.activeElement)) { waiting = true; return; }
    waiting = false;
    htmx.trigger(live, "changed");
  };
  events.addEventListener("changed", refresh);
  live.addEventListener("focusout", () => setTimeout(() => { if (waiting) refresh(); }, 0));
  events.addEventListener("ended", () => { events.close(); location.reload(); });
})();
