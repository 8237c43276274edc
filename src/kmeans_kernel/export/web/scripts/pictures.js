// Grey pictures as canvases, and small helpers for elements and numbers.
// Ink is black with opacity on a transparent ground; the style inverts it in dark mode.

function pictureOf(values, shape, highest, name) {
  const canvas = document.createElement("canvas");
  canvas.className = "picture";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", name);
  paintPicture(canvas, values, shape, highest);
  return canvas;
}

function paintPicture(canvas, values, [height, width], highest) {
  canvas.height = height;
  canvas.width = width;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let at = 0; at < values.length; at++) {
    image.data[4 * at + 3] = Math.round((255 * Math.max(0, values[at])) / highest);
  }
  context.putImageData(image, 0, 0);
}

// Creates an element with attributes and children; strings become text nodes, never HTML.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const byId = (id) => document.getElementById(id);

const percent = (share) => {
  const shown = 100 * share;
  return `${shown >= 99.95 || shown < 0.05 ? shown.toFixed(0) : shown.toFixed(1)} %`;
};

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

const plain = (value, digits = 4) => String(Number(Number(value).toPrecision(digits)));

// Formats integers in full, other numbers with four digits.
const count = (number) =>
  (Number.isInteger(number) ? number.toLocaleString("en") : plain(number));

const counted = (number, noun) => `${count(number)} ${number === 1 ? noun : `${noun}s`}`;
