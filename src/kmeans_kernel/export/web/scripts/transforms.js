// First step of the map to the sphere: a transform of each number, or an encoding of columns, as in
// core/arrays/feature_transform.py and core/arrays/encoding.py. A missing number is NaN.

// Beyond this nothing is told apart; its logarithm is 700 + ln 2.
const FARTHEST = Math.sinh(700);

// Functions of (x − c) / w, by the kind of the feature transform.
const CURVES = { standard: (far) => far, asinh: Math.asinh };

class FeatureTransform {
  constructor({ kind, centers, widths, gains }) {
    Object.assign(this, { centers, widths, gains });
    this.curve = CURVES[kind];
    this.nFeatures = centers.length;
  }

  // The transform of the number x of feature j; that of a missing number is 0.
  at(j, x) {
    if (Number.isNaN(x)) return 0;
    const far = (x - this.centers[j]) / this.widths[j];
    return this.curve(Math.max(-FARTHEST, Math.min(FARTHEST, far))) * this.gains[j];
  }

  apply(row) {
    return Float64Array.from(row, (x, j) => this.at(j, x));
  }
}

// Encoding of columns as features: values, steps, levels, indicators of missing values.
class ColumnEncoding {
  // Takes the arrays of the Python record, under their names in camel case.
  constructor(parts) {
    Object.assign(this, parts);
    const { valueColumns, stepColumns, levelColumns, missingColumns } = parts;
    this.nFeatures = [valueColumns, stepColumns, levelColumns, missingColumns].reduce(
      (sum, columns) => sum + columns.length, 0);
  }

  apply(row) {
    const out = new Float64Array(this.nFeatures);
    let at = 0;
    for (const [v, column] of this.valueColumns.entries()) {
      out[at++] = this.values.at(v, row[column]);
    }
    for (const [s, column] of this.stepColumns.entries()) out[at++] = this.step(s, row[column]);
    for (const [l, column] of this.levelColumns.entries()) out[at++] = this.level(l, row[column]);
    for (const [m, column] of this.missingColumns.entries()) {
      out[at++] = Number(Number.isNaN(row[column])) - this.missingShares[m];
    }
    return out;
  }

  // How far the number x is on step s, from 0 to 1, less the mean.
  step(s, x) {
    if (Number.isNaN(x)) return 0;
    const position = (x - this.stepStarts[s]) / this.stepWidths[s];
    return (Math.max(0, Math.min(1, position)) - this.stepMeans[s]) * this.stepGains[s];
  }

  // The indicator of a level, less its frequency; 0 for a missing or unknown level.
  level(l, code) {
    return code >= 0 ? Number(code === this.levelCodes[l]) - this.levelShares[l] : 0;
  }
}
