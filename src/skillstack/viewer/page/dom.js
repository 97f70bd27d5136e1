// Making elements: h for HTML, s for SVG. No markup is ever put together from strings.

const SVG = "http://www.w3.org/2000/svg";

function make(element, properties, children) {
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else if (key === "style") for (const [name, part] of Object.entries(value)) element.style.setProperty(name, part);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, properties, ...children) => make(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => make(document.createElementNS(SVG, tag), properties, children);
export const byId = (id) => document.getElementById(id);

export function fill(element, ...children) {
  element.replaceChildren(...children);
}

export function options(select, words, chosen) {
  fill(select, ...words.map((word) => h("option", { value: word, text: word, selected: word === chosen })));
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? "#141414" : "#fafafa";
}
