// The fitted model, with the same scores as FittedModel in Python.
// A row is an array of numbers; arrays of the model are typed arrays with a shape.

class FittedModel {
  constructor({ directions, dualCoef, intercept, kernel, lift, temperature, scales, transform }) {
    this.directions = directions; // (m, D) or (m, D + 1) unit rows
    this.dualCoef = dualCoef; // (m, K)
    this.intercept = intercept; // (K,)
    this.kernel = KERNELS[kernel.name](kernel);
    this.lift = lift;
    this.temperature = temperature;
    this.scales = scales; // (D,) or null
    this.transform = transform; // a FeatureTransform, a ColumnEncoding, or null
    this.size = directions.shape[0];
    this.nClasses = intercept.length;
  }

  // The unit row [s∘x, lift] / ‖[s∘x, lift]‖, after the feature transform where the model has one.
  onSphere(row) {
    const features = this.transform ? this.transform.apply(row) : row;
    const d = features.length;
    const out = new Float64Array(this.lift > 0 ? d + 1 : d);
    out.set(features);
    if (this.scales) for (let j = 0; j < d; j++) out[j] *= this.scales[j];
    if (this.lift > 0) out[d] = this.lift;
    return toUnit(out);
  }

  // Kernel values Ω(x, ξ) of a row with every representative ξ.
  kernelValues(row) {
    const x = this.onSphere(row);
    const values = new Float64Array(this.size);
    for (let q = 0, at = 0; q < this.size; q++) {
      let cosine = 0;
      for (let j = 0; j < x.length; j++, at++) cosine += x[j] * this.directions[at];
      values[q] = this.kernel(cosine);
    }
    return values;
  }

  // Scores of the classes, Σ_q Ω(x, ξ_q) a_q + b.
  scores(row) {
    return this.scoresOf(this.kernelValues(row));
  }

  scoresOf(values) {
    const scores = Float64Array.from(this.intercept);
    for (let q = 0, at = 0; q < this.size; q++) {
      for (let k = 0; k < this.nClasses; k++, at++) scores[k] += values[q] * this.dualCoef[at];
    }
    return scores;
  }

  // Contribution of each representative to the score of class k.
  contributionsOf(values, k) {
    return values.map((value, q) => value * this.dualCoef[q * this.nClasses + k]);
  }

  probabilities(scores) {
    return softmax(scores.map((score) => score / this.temperature));
  }
}

// Divides a row by its norm, in place; a row of zeros stays zero. The division by the largest entry
// keeps squares from overflowing.
function toUnit(row) {
  let largest = 0;
  for (const value of row) largest = Math.max(largest, Math.abs(value));
  if (largest === 0) return row;
  let square = 0;
  for (let j = 0; j < row.length; j++) {
    row[j] /= largest;
    square += row[j] * row[j];
  }
  const length = Math.sqrt(square);
  for (let j = 0; j < row.length; j++) row[j] /= length;
  return row;
}

function softmax(scores) {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function argmax(values) {
  let best = 0;
  for (let k = 1; k < values.length; k++) if (values[k] > values[best]) best = k;
  return best;
}
