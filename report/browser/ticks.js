// Round numbers for axes: 1, 2 or 5 times a power of ten; of bytes powers of two.

// The least of 1, 2, 5, 10, 20, ... that is not below.
export const roundStep = (least) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * [1, 2, 5, 10].find((times) => times * power >= least);
};
export const linearTicks = (from, to, most) => {
  const step = roundStep((to - from) / Math.max(most, 1)), found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
};
// Those to be shown first stand first: powers of ten before 5 and 2 times these, powers of 1024 before others of two.
export const logTicks = (from, to, isBytes) => {
  const base = isBytes ? 1024 : 10, found = [];
  for (const times of isBytes ? [1, 32, 4, 256, 2, 8, 16, 64, 128, 512] : [1, 5, 2])
    for (let power = 1; power * times <= to; power *= base)
      if (power * times >= from) found.push(power * times);
  return found;
};
