// Transformers: each entry returns a function from a row to its features, the same as in Python. A
// row is of numbers, for a TableEncoder of values.

const STEPS = {
  StandardScaler({ params }, place) {
    const mean = params.with_mean ? place.get("mean_") : null;
    const scale = params.with_std ? place.get("scale_") : null;
    return (row) =>
      row.map((value, j) => (value - (mean ? mean[j] : 0)) / (scale ? scale[j] : 1));
  },

  TableEncoder(tree, place) {
    const columns = tree.columns?.map((description) => new Column(description));
    const encoding = featureMapOf(tree, place);
    return (row) => encoding.apply(columns ? codesOf(columns, row) : row);
  },

  AGOPProjection(tree, place) {
    const components = place.get("components");
    const width = components.shape[1];
    return (row) => {
      const out = new Float64Array(width);
      for (let i = 0, at = 0; i < row.length; i++) {
        for (let j = 0; j < width; j++, at++) out[j] += row[i] * components[at];
      }
      return out;
    };
  },

  PixelNormalizer: () => (row) => toUnit(centered(row)),

  FourierFeatures({ params }) {
    return (row) => {
      const pixels = centered(row);
      const magnitudes = fourierMagnitudes(pixels);
      const kept = params.root ? magnitudes.map(Math.sqrt) : magnitudes;
      return joined(toUnit(pixels), toUnit(centered(kept)));
    };
  },

  Deskewer({ image_shape }) {
    return (row) => deskewed(row, ...image_shape);
  },

  OrientedGradients({ params, image_shape }) {
    const { n_orientations, sharpness, blur, stride } = params;
    return (row) => {
      const slopes = orientedSlopes(row, ...image_shape, n_orientations, sharpness);
      const maps = slopes.map((map) => sampled(map, ...image_shape, blur, stride).map(Math.sqrt));
      return toUnit(concatenated(maps));
    };
  },

  EdgePatterns({ image_shape, edges }, place) {
    const patterns = place.get("patterns");
    const mixing = place.get("mixing");
    return (row) => edgePatterns(row, image_shape, edges, patterns, mixing);
  },
};

// Subtracts the mean of a row; a constant row becomes exactly zero.
function centered(row) {
  const highest = row.reduce((a, b) => Math.max(a, b), -Infinity);
  const lowest = row.reduce((a, b) => Math.min(a, b), Infinity);
  if (highest === lowest) return new Float64Array(row.length);
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  return Float64Array.from(row, (value) => value - mean);
}

// Returns the first half of the Fourier magnitudes, by the definition of the transform: rows are
// short, so an FFT is not needed.
function fourierMagnitudes(row) {
  const n = row.length;
  const cosines = Float64Array.from(row, (_, j) => Math.cos((2 * Math.PI * j) / n));
  const sines = Float64Array.from(row, (_, j) => Math.sin((2 * Math.PI * j) / n));
  return Float64Array.from({ length: Math.ceil(n / 2) }, (_, k) => {
    let real = 0;
    let imaginary = 0;
    for (let j = 0, angle = 0; j < n; j++, angle = (angle + k) % n) {
      real += row[j] * cosines[angle];
      imaginary += row[j] * sines[angle];
    }
    return Math.hypot(real, imaginary);
  });
}

// Concatenates two unit rows to one of unit length.
function joined(first, second) {
  return concatenated([first, second]).map((value) => value * Math.SQRT1_2);
}

function concatenated(rows) {
  const out = new Float64Array(rows.reduce((sum, row) => sum + row.length, 0));
  let at = 0;
  for (const row of rows) {
    out.set(row, at);
    at += row.length;
  }
  return out;
}

// Shears an image along its rows, so that its slant becomes zero.
function deskewed(image, height, width) {
  const { slant, middle } = slantOf(image, height, width);
  const out = new Float64Array(image.length);
  for (let i = 0; i < height; i++) {
    const shift = slant * (i - middle);
    const at = (j) => (j >= 0 && j < width ? image[i * width + j] : 0);
    for (let j = 0; j < width; j++) {
      const left = Math.floor(j + shift);
      const share = j + shift - left;
      out[i * width + j] = (1 - share) * at(left) + share * at(left + 1);
    }
  }
  return out;
}

// Returns the slant of an image, cov(x, y) / var(y) weighted by brightness and limited to ±1, and
// the row of its centre of mass.
function slantOf(image, height, width) {
  let total = 0, rows = 0, columns = 0, squares = 0, together = 0;
  for (let i = 0; i < height; i++) {
    for (let j = 0; j < width; j++) {
      const weight = Math.max(0, image[i * width + j]);
      total += weight;
      rows += weight * i;
      columns += weight * j;
      squares += weight * i * i;
      together += weight * i * j;
    }
  }
  if (!(total > 0)) return { slant: 0, middle: 0 };
  const middle = rows / total;
  const spread = squares / total - middle * middle;
  const slant = spread > 1e-9 ? (together / total - (middle * columns) / total) / spread : 0;
  return { slant: Math.max(-1, Math.min(1, slant)), middle };
}

// Returns for each orientation the map of gradient magnitudes in about that direction. Pixels
// beyond the border count as zero.
function orientedSlopes(image, height, width, nOrientations, sharpness) {
  const at = (i, j) =>
    i >= 0 && i < height && j >= 0 && j < width ? image[i * width + j] : 0;
  const maps = Array.from({ length: nOrientations }, () => new Float64Array(image.length));
  const ways = maps.map((_, k) => (2 * Math.PI * k) / nOrientations);
  for (let i = 0; i < height; i++) {
    for (let j = 0; j < width; j++) {
      const down = at(i + 1, j) - at(i - 1, j);
      const right = at(i, j + 1) - at(i, j - 1);
      const steepness = Math.hypot(down, right);
      if (steepness === 0) continue;
      ways.forEach((angle, k) => {
        const cosine = (Math.cos(angle) * right + Math.sin(angle) * down) / steepness;
        maps[k][i * width + j] = steepness * Math.max(0, cosine) ** sharpness;
      });
    }
  }
  return maps;
}

// Applies a Gaussian blur to a map, and samples it every `stride` pixels.
function sampled(map, height, width, blur, stride) {
  const down = sampling(height, blur, stride);
  const right = sampling(width, blur, stride);
  const out = new Float64Array(down.length * right.length);
  const line = new Float64Array(width);
  down.forEach((weights, a) => {
    line.fill(0);
    for (let i = 0; i < height; i++) {
      for (let j = 0; j < width; j++) line[j] += weights[i] * map[i * width + j];
    }
    right.forEach((across, b) => {
      let sum = 0;
      for (let j = 0; j < width; j++) sum += across[j] * line[j];
      out[a * right.length + b] = sum;
    });
  });
  return out;
}

// Returns the Gaussian weights of the pixels of a line for each sample.
function sampling(length, blur, stride) {
  const count = Math.ceil(length / stride);
  const whole = Math.sqrt(2 * Math.PI) * blur;
  return Array.from({ length: count }, (_, s) => {
    const centre = (length - 1) / 2 + stride * (s - (count - 1) / 2);
    return Float64Array.from({ length }, (_, i) =>
      Math.exp(-((i - centre) ** 2) / (2 * blur * blur)) / whole);
  });
}

// Returns the oriented gradients and the pooled codes of learned edge patterns, concatenated.
function edgePatterns(row, [height, width], edges, patterns, mixing) {
  const slopes = orientedSlopes(row, height, width, edges.orientations, edges.sharpness);
  const roots = (blur) =>
    slopes.map((map) => sampled(map, height, width, blur, edges.stride).map(Math.sqrt));
  const grid = [Math.ceil(height / edges.stride), Math.ceil(width / edges.stride)];
  const plain = interleaved(roots(edges.coarse_blur));
  const codes = patternCodes(roots(edges.fine_blur), grid, edges, patterns);
  return joined(toUnit(plain), toUnit(pooled(codes, grid, edges, mixing)));
}

// Interleaves maps to one row, in which the values of a position are adjacent.
function interleaved(maps) {
  const n = maps.length;
  return Float64Array.from({ length: n * maps[0].length }, (_, at) =>
    maps[at % n][Math.floor(at / n)]);
}

// Returns a map for each pattern: its Gaussian similarity to the neighbourhood of each position,
// times the square root of the norm of the neighbourhood.
function patternCodes(maps, [height, width], { side, width: sharpness }, patterns) {
  const [count, size] = patterns.shape;
  const margin = (side - 1) / 2;
  const codes = Array.from({ length: count }, () => new Float64Array(height * width));
  const around = new Float64Array(size);
  for (let i = 0; i < height; i++) {
    for (let j = 0; j < width; j++) {
      let square = 0;
      for (let at = 0; at < size; at++) {
        const place = at % (side * side);
        const y = i + Math.floor(place / side) - margin;
        const x = j + (place % side) - margin;
        const inside = y >= 0 && y < height && x >= 0 && x < width;
        around[at] = inside ? maps[Math.floor(at / (side * side))][y * width + x] : 0;
        square += around[at] * around[at];
      }
      const strength = Math.sqrt(square);
      for (let k = 0; strength > 0 && k < count; k++) {
        let product = 0;
        for (let at = 0; at < size; at++) product += around[at] * patterns[k * size + at];
        codes[k][i * width + j] =
          Math.exp(sharpness * (product / strength - 1)) * Math.sqrt(strength);
      }
    }
  }
  return codes;
}

// Blurs and samples codes, and multiplies them by `mixing`, which decorrelates similar patterns.
function pooled(codes, [height, width], { pool_blur, pool_stride }, mixing) {
  const maps = codes.map((code) => sampled(code, height, width, pool_blur, pool_stride));
  const count = maps.length;
  const out = new Float64Array(count * maps[0].length);
  for (let place = 0; place < maps[0].length; place++) {
    for (let i = 0; i < count; i++) {
      const value = maps[i][place];
      for (let k = 0; k < count; k++) out[place * count + k] += value * mixing[i * count + k];
    }
  }
  return out;
}
