// Arrays of the page: decoded from base64, decompressed, and cut into typed arrays by the index.

const READERS = {
  f2: (bytes) => Float32Array.from(new Uint16Array(bytes), halfToNumber),
  f4: (bytes) => new Float32Array(bytes),
  f8: (bytes) => new Float64Array(bytes),
  u1: (bytes) => new Uint8Array(bytes),
  i4: (bytes) => new Int32Array(bytes),
};

async function readArrays(text, entries) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const arrays = {};
  for (const { name, dtype, shape, start, stop } of entries) {
    const values = READERS[dtype](bytes.slice(start, stop));
    arrays[name] = Object.assign(values, { shape });
  }
  return arrays;
}

// Converts an IEEE 754 half-precision number: 1 sign bit, 5 bits of exponent, 10 of fraction.
function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = (bits & 0x3ff) / 1024;
  if (exponent === 0) return sign * fraction * 2 ** -14;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction) * 2 ** (exponent - 15);
}

// Returns one row of a two-dimensional array, without copying.
function rowOf(array, index) {
  const width = array.length / array.shape[0];
  return array.subarray(index * width, (index + 1) * width);
}
