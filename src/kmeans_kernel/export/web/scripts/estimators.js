// Estimators built from the tree of the model file: a pipeline, a patch voting classifier, or the
// classifier itself. Each classifies a row, with the contributions of the representatives.

// The arrays of one estimator in the tree, stored under the prefix of its path.
class Place {
  constructor(arrays, prefix = "") {
    this.arrays = arrays;
    this.prefix = prefix;
  }

  below(name) {
    return new Place(this.arrays, `${this.prefix}${name}.`);
  }

  has(name) {
    return `${this.prefix}${name}` in this.arrays;
  }

  get(name) {
    return this.arrays[`${this.prefix}${name}`];
  }
}

// Result for a row: scores and probabilities of the classes, and the contributions of the
// representatives to each score, which with the intercept add up to it.
class Verdict {
  constructor(model, scores, probabilities, values) {
    Object.assign(this, { model, scores, probabilities, values });
    this.best = argmax(probabilities);
  }

  contributions(k) {
    return this.model.contributionsOf(this.values, k);
  }
}

// The first step of the map to the sphere: a transform, an encoding of columns, or null.
function featureMapOf({ feature_transform: kind, encoding }, place) {
  const transform = (name) => new FeatureTransform({
    kind: name,
    centers: place.get("transform_centers"),
    widths: place.get("transform_widths"),
    gains: place.get("transform_gains"),
  });
  if (!encoding) return kind ? transform(kind) : null;
  return new ColumnEncoding({
    values: encoding.values ? transform(encoding.values) : null,
    valueColumns: place.get("value_columns"),
    stepColumns: place.get("step_columns"),
    stepStarts: place.get("step_starts"),
    stepWidths: place.get("step_widths"),
    stepMeans: place.get("step_means"),
    stepGains: place.get("step_gains"),
    levelColumns: place.get("level_columns"),
    levelCodes: place.get("level_codes"),
    levelShares: place.get("level_shares"),
    missingColumns: place.get("missing_columns"),
    missingShares: place.get("missing_shares"),
  });
}

class Classifier {
  constructor(tree, place) {
    this.columns = tree.columns?.map((description) => new Column(description)) ?? null;
    this.owners = place.get("representative_classes");
    this.counts = place.get("representative_counts");
    this.model = new FittedModel({
      directions: place.get("directions"),
      dualCoef: place.get("dual_coef"),
      intercept: place.get("intercept"),
      kernel: tree.kernel,
      lift: tree.lift,
      temperature: tree.temperature,
      scales: place.has("feature_scales") ? place.get("feature_scales") : null,
      transform: featureMapOf(tree, place),
    });
  }

  // Classifies a row of numbers; of values, if the model was trained on a table of columns.
  classify(row) {
    const numbers = this.columns ? codesOf(this.columns, row) : row;
    const values = this.model.kernelValues(numbers);
    const scores = this.model.scoresOf(values);
    return new Verdict(this.model, scores, this.model.probabilities(scores), values);
  }
}

class Pipeline {
  constructor(tree, place) {
    const steps = tree.steps.map(([, step], k) => [step, place.below(`steps.${k}`)]);
    const [last, home] = steps.pop();
    this.steps = steps.map(([step, below]) => STEPS[step.kind](step, below));
    this.last = estimatorOf(last, home);
  }

  classify(row) {
    return this.last.classify(this.steps.reduce((value, step) => step(value), row));
  }
}

// The scores of a patch, by the method that gives them.
const SCORES_OF = {
  decision_function: (verdict) => verdict.scores,
  predict_proba: (verdict) => verdict.probabilities,
  predict: (verdict) => verdict.probabilities.map((_, k) => Number(k === verdict.best)),
};

// Patch voting: scores and kernel values are means over the patches.
class PatchVoting {
  constructor(tree, place) {
    this.imageShape = tree.image_shape;
    this.patchShape = tree.patch_shape;
    this.byMajority = tree.vote === "majority";
    this.scoresOf = SCORES_OF[tree.score_method];
    this.last = estimatorOf(tree.classifier, place.below("classifier"));
  }

  classify(row) {
    const verdicts = this.patches(row).map((patch) => this.last.classify(patch));
    const { model } = verdicts[0];
    const scores = verdicts.map(this.scoresOf);
    const shares = softmax(meanOf(scores));
    if (this.byMajority) this.countVotes(scores, shares);
    const values = meanOf(verdicts.map((verdict) => verdict.values));
    return new Verdict(model, model.scoresOf(values), shares, values);
  }

  // Adds one vote per patch. The softmax of the mean scores is one vote more, which breaks ties.
  countVotes(scores, shares) {
    for (const one of scores) shares[argmax(one)] += 1;
    for (let k = 0; k < shares.length; k++) shares[k] /= scores.length + 1;
  }

  patches(row) {
    const [height, width] = this.imageShape;
    const [high, wide] = this.patchShape;
    const found = [];
    for (let top = 0; top + high <= height; top++) {
      for (let left = 0; left + wide <= width; left++) {
        found.push(Float64Array.from({ length: high * wide }, (_, at) =>
          row[(top + Math.floor(at / wide)) * width + left + (at % wide)]));
      }
    }
    return found;
  }
}

function meanOf(rows) {
  const mean = new Float64Array(rows[0].length);
  for (const row of rows) for (let j = 0; j < mean.length; j++) mean[j] += row[j] / rows.length;
  return mean;
}

const ESTIMATORS = {
  KMeansKernelClassifier: Classifier,
  Pipeline,
  PatchVotingClassifier: PatchVoting,
};

function estimatorOf(tree, place) {
  return new ESTIMATORS[tree.kind](tree, place);
}

// Returns the classifier at the end of pipelines and patch voting.
function classifierOf(estimator) {
  return estimator.last ? classifierOf(estimator.last) : estimator;
}
