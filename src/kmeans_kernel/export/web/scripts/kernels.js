// The JavaScript counterpart of each kernel, by its name in core/kernels/kernels.py: a function of
// the cosine c for given parameters.

// 1 − c, and zero where that is rounding alone.
const TIP = 1e-13;
const gapOf = (c) => (1 - c > TIP ? 1 - c : 0);

const KERNELS = {
  poly: ({ degree }) => (c) => c ** degree,
  rbf: ({ gamma }) => (c) => Math.exp(2 * gamma * (c - 1)),
  laplacian: ({ gamma }) => (c) => Math.exp(-2 * Math.sqrt(gamma * gapOf(c))),
  exponential_power: ({ gamma, exponent }) => (c) => Math.exp(-((2 * gamma * gapOf(c)) ** (exponent / 2))),
};
