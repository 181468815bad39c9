// A click on a header sorts the rows of its table, the second one in reverse.
const value = (row, column) => {
  const text = row.cells[column].dataset.value ?? row.cells[column].innerText.trim();
  const number = parseFloat(text.replaceAll(",", "").replace("−", "-"));
  return Number.isNaN(number) ? text : number;
};
for (const header of document.querySelectorAll("thead th")) {
  header.tabIndex = 0;
  const sort = () => {
    const body = header.closest("table").tBodies[0];
    const order = header.ariaSort === "descending" ? "ascending" : "descending";
    for (const other of header.parentElement.cells) other.ariaSort = null;
    header.ariaSort = order;
    const sign = order === "ascending" ? 1 : -1;
    const compare = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1);
    const column = header.cellIndex;
    body.append(...[...body.rows].sort((a, b) => sign * compare(value(a, column), value(b, column))));
  };
  header.addEventListener("click", sort);
  header.addEventListener("keydown", ({ key }) => key === "Enter" && sort());
}

// A box that scrolls sideways fades on the right while more follows.
for (const box of document.querySelectorAll(".wide, nav")) {
  const fade = () => box.classList.toggle("more", box.scrollWidth - box.scrollLeft > box.clientWidth + 1);
  box.addEventListener("scroll", fade);
  new ResizeObserver(fade).observe(box);
}

// Plotly is most of the file, so it is gzipped.
const content = document.getElementById("plotly").textContent;
const packed = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const script = document.createElement("script");
script.textContent = await new Response(unpacked).text();
document.head.append(script);

// Paper is narrower than the screen, and charts are not redrawn for it: a viewBox scales them.
const scale = (element) => {
  for (const svg of element.querySelectorAll(".main-svg")) {
    svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  }
};

// Charts in closed details are drawn when these open, as they have no width before.
const draw = async (element) => {
  const source = element.querySelector("script");
  if (!source || element.closest("details:not([open])")) return;
  const { data, layout } = JSON.parse(source.textContent);
  delete layout.minreducedwidth; // the page's: plotly would leave no room for labels
  element.replaceChildren();
  if (innerWidth < 640) {
    // On a phone, markers would hide their intervals, and names of rows take the width.
    for (const { marker } of data) if (marker) marker.size *= 0.75;
    layout.font.size = 10;
  }
  await Plotly.newPlot(element, data, layout, { displayModeBar: false, responsive: true });
  scale(element);
  element.on("plotly_afterplot", () => scale(element));
};
document.addEventListener("toggle", ({ target }) => target.querySelectorAll(".figure").forEach(draw), true);
for (const element of document.querySelectorAll(".figure")) {
  await draw(element);
  await new Promise((resolve) => setTimeout(resolve));
}
