() => {
  // Of every text that is shown: its colour against the first opaque colour behind it.
  const parse = (colour) => { const n = colour.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    let back = [0, 0, 0, 0];
    for (let e = element; e && back[3] === 0; e = e.parentElement) back = parse(getComputedStyle(e).backgroundColor);
    return back[3] === 0 ? [255, 255, 255] : back;
  };
  const contrasts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || element.closest("script, style, title, .unseen, .skip, option")) continue;
    const style = getComputedStyle(element);
    const front = parse(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(front), light(behind(element))].sort((x, y) => y - x);
    contrasts.push([(a + 0.05) / (b + 0.05), `${element.tagName}.${element.getAttribute("class") ?? ""}`, text.slice(0, 40)]);
  }
  // What can be used or is a picture, and has no name.
  const named = (e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.labels?.length;
  const all = document.querySelectorAll("button, a[href], input, select, textarea, [role=region], [role=group], [role=img], dialog");
  return {
    contrasts: contrasts.sort((x, y) => x[0] - y[0]),
    unnamed: [...all].filter((e) => e.type !== "hidden" && !named(e)).map((e) => e.outerHTML.slice(0, 120)),
    fits: document.documentElement.scrollWidth <= document.documentElement.clientWidth,
    lang: document.documentElement.lang,
    titles: document.querySelectorAll("h1").length,
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
  };
}
