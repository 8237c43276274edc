// Normalization of drawings and image files: content is scaled and centred as in the training
// images, by the frame of the data set. Ink is a Float64Array of values between 0 and 1 with a
// shape [height, width].

// Least ink of a pixel that counts for the extent of the content; the same as in _frame.py.
const FAINT = 0.15;

// Variation of brightness within a background, such as that of photographed paper.
const NOISE = 0.05;

// Pen width as a fraction of the size of the content.
const PEN = 0.115;

// Drawings smaller than this, in pixels of the pad (280 wide), are not enlarged to full size: a dot
// stays a dot.
const SMALLEST = 60;

// Oversampling of strokes in each direction, for antialiasing.
const FINE = 8;

// Draws strokes, lists of points, at the model's size. The pen width is relative to the content, so
// that it does not depend on the size of the drawing.
function inkOfStrokes(strokes, shape, frame) {
  const points = strokes.flat();
  if (!points.length) return null;
  const extent = boxOf(points.map(([x]) => x), points.map(([, y]) => y));
  const [height, width] = shape;
  const side = Math.min(...frame.box);
  const pen = Math.max(0.9, PEN * side);
  const scale = Math.min(
    (frame.box[0] - pen) / Math.max(extent.height, 1e-9),
    (frame.box[1] - pen) / Math.max(extent.width, 1e-9),
    side / SMALLEST);
  const canvas = new OffscreenCanvas(width * FINE, height * FINE);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.scale(FINE, FINE);
  context.translate(width / 2, height / 2);
  context.scale(scale, scale);
  context.translate(-extent.x - extent.width / 2, -extent.y - extent.height / 2);
  drawStrokes(context, strokes, pen / scale);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const fine = shaped(Float64Array.from({ length: data.length / 4 }, (_, at) =>
    data[4 * at + 3] / 255), [height * FINE, width * FINE]);
  return centredInk(resized(fine, shape), frame);
}

function drawStrokes(context, strokes, thickness) {
  context.lineWidth = thickness;
  context.lineCap = context.lineJoin = "round";
  for (const [first, ...rest] of strokes) {
    context.beginPath();
    context.moveTo(...first);
    context.lineTo(first[0] + 1e-3, first[1]); // a stroke of one point draws a dot
    for (const point of rest) context.lineTo(...point);
    context.stroke();
  }
}

function boxOf(xs, ys) {
  const x = Math.min(...xs), y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

// Crops ink to its content, scales the content to the frame's box, and centres it.
function framedInk(ink, shape, frame) {
  const extent = extentOf(ink);
  if (!extent) return null;
  const { top, left, height, width } = extent;
  const scale = Math.min(frame.box[0] / height, frame.box[1] / width);
  const size = [height, width].map((length) => Math.max(1, Math.round(length * scale)));
  const small = resized(cut(ink, top, left, height, width), size);
  const out = shaped(new Float64Array(shape[0] * shape[1]), shape);
  paste(small, out, Math.round((shape[0] - size[0]) / 2), Math.round((shape[1] - size[1]) / 2));
  return centredInk(out, frame);
}

// Shifts ink by whole pixels, so that its centre is at the frame's centre.
function centredInk(ink, frame) {
  const middle = frame.centre === "mass" ? massCentre(ink) : boxCentre(ink);
  if (!middle) return null;
  const out = shaped(new Float64Array(ink.length), ink.shape);
  paste(ink, out, Math.round(frame.at[0] - middle[0]), Math.round(frame.at[1] - middle[1]));
  return out;
}

function massCentre(ink) {
  const width = ink.shape[1];
  let total = 0, y = 0, x = 0;
  ink.forEach((value, at) => {
    total += value;
    y += value * Math.floor(at / width);
    x += value * (at % width);
  });
  return total > 0 ? [y / total, x / total] : null;
}

function boxCentre(ink) {
  const extent = extentOf(ink);
  return extent && [extent.top + (extent.height - 1) / 2, extent.left + (extent.width - 1) / 2];
}

function extentOf(ink) {
  const width = ink.shape[1];
  const seen = Array.from(ink.keys()).filter((at) => ink[at] > FAINT);
  if (!seen.length) return null;
  const [top, bottom] = rangeOf(seen, (at) => Math.floor(at / width));
  const [left, right] = rangeOf(seen, (at) => at % width);
  return { top, left, height: bottom - top + 1, width: right - left + 1 };
}

function rangeOf(places, coordinate) {
  let low = Infinity, high = -Infinity;
  for (const place of places) {
    const value = coordinate(place);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

// Resizes ink by area averaging.
function resized(ink, shape) {
  const [height, width] = ink.shape;
  const down = coverage(height, shape[0]);
  const right = coverage(width, shape[1]);
  const out = shaped(new Float64Array(shape[0] * shape[1]), shape);
  down.forEach((rows, i) => right.forEach((columns, j) => {
    let sum = 0;
    for (const [y, high] of rows) {
      for (const [x, wide] of columns) sum += high * wide * ink[y * width + x];
    }
    out[i * shape[1] + j] = sum;
  }));
  return out;
}

// Resampling weights of a line of `length` pixels to `count`: for each new pixel the pairs
// [old pixel, weight] of the old pixels that it covers.
function coverage(length, count) {
  const step = length / count;
  return Array.from({ length: count }, (_, k) => {
    const from = k * step, to = (k + 1) * step;
    const covered = [];
    for (let at = Math.floor(from); at < Math.min(length, Math.ceil(to - 1e-9)); at++) {
      covered.push([at, (Math.min(at + 1, to) - Math.max(at, from)) / step]);
    }
    return covered;
  });
}

function cut(ink, top, left, height, width) {
  return shaped(Float64Array.from({ length: height * width }, (_, at) =>
    ink[(top + Math.floor(at / width)) * ink.shape[1] + left + (at % width)]), [height, width]);
}

function paste(ink, out, top, left) {
  const [height, width] = ink.shape;
  const [rows, columns] = out.shape;
  for (let i = Math.max(0, -top); i < Math.min(height, rows - top); i++) {
    for (let j = Math.max(0, -left); j < Math.min(width, columns - left); j++) {
      out[(i + top) * columns + j + left] = ink[i * width + j];
    }
  }
}

function shaped(values, shape) {
  return Object.assign(values, { shape });
}

// Conversion between ink and the model's pixel values.
function valuesOf(ink, { low, high, inverted }) {
  return ink.map((share) => low + (inverted ? 1 - share : share) * (high - low));
}

function inkOfValues(values, { low, high, inverted }) {
  return Float64Array.from(values, (value) => {
    const share = (value - low) / Math.max(1e-300, high - low);
    return inverted ? 1 - share : share;
  });
}

// Returns the ink of an image file, or null if the image is blank. An image of exactly the model's
// size is not scaled or shifted.
async function inkOfFile(file, shape, frame) {
  const image = await readImage(file);
  const exact = image.height === shape[0] && image.width === shape[1];
  const shrink = exact ? 1 : Math.min(1, 400 / Math.max(image.width, image.height));
  const width = Math.max(1, Math.round(image.width * shrink));
  const height = Math.max(1, Math.round(image.height * shrink));
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height);
  if (!exact) return framedInk(inkOfPixels(pixels), shape, frame);
  const light = lightOf(pixels);
  return frame.inverted ? shaped(light.map((value) => 1 - value), light.shape) : light;
}

async function readImage(file) {
  try {
    return await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch (error) {
    if (!file.type.includes("svg")) throw error;
    const image = new Image(); // createImageBitmap refuses SVG; an <img> element decodes it
    image.src = `data:${file.type};base64,${btoa(await file.text())}`;
    await image.decode();
    return image;
  }
}

// Returns the difference of each pixel from the background, from 0 to 1. The background is the
// median of the border. Ink is the lighter or the darker side, whichever has the larger sum; on a
// transparent background it is the opacity.
function inkOfPixels(pixels) {
  const alpha = shaped(Float64Array.from({ length: pixels.width * pixels.height }, (_, at) =>
    pixels.data[4 * at + 3] / 255), [pixels.height, pixels.width]);
  if (borderLevel(alpha) < 0.5) return stretched(alpha);
  const light = lightOf(pixels);
  const ground = borderLevel(light);
  const off = light.map((value) => value - ground);
  const sums = [1, -1].map((sign) =>
    off.reduce((sum, value) => sum + Math.max(0, sign * value - NOISE), 0));
  const sign = sums[0] >= sums[1] ? 1 : -1;
  return stretched(shaped(off.map((value) => Math.max(0, sign * value)), light.shape));
}

// Returns the luma between 0 and 1 (weights of ITU-R BT.601), transparent pixels on white.
function lightOf({ data, width, height }) {
  return shaped(Float64Array.from({ length: width * height }, (_, at) => {
    const [red, green, blue, alpha] = data.subarray(4 * at, 4 * at + 4);
    const grey = red === green && green === blue
      ? red : 0.299 * red + 0.587 * green + 0.114 * blue;
    return (grey * alpha + 255 * (255 - alpha)) / 65025;
  }), [height, width]);
}

function borderLevel(values) {
  const [height, width] = values.shape;
  const border = Array.from(values).filter((_, at) => {
    const i = Math.floor(at / width), j = at % width;
    return i === 0 || j === 0 || i === height - 1 || j === width - 1;
  });
  return border.sort((a, b) => a - b)[Math.floor(border.length / 2)];
}

// Scales ink to a maximum of 1, and sets faint ink to 0: it is noise of the background.
function stretched(ink) {
  const highest = ink.reduce((a, b) => Math.max(a, b), 0);
  if (highest < NOISE) return shaped(new Float64Array(ink.length), ink.shape);
  return shaped(ink.map((value) => {
    const share = value / highest;
    return share < FAINT ? 0 : share;
  }), ink.shape);
}
