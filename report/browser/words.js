// Numbers as text.

// Weights of folded text may be below 1.
export const grouped = (number) => (Math.abs(number) < 100 ? Number(number.toPrecision(3)) : Math.round(number))
    .toLocaleString('en-US', {maximumFractionDigits: 20});
export const share = (part, whole) => `${(whole > 0 ? 100 * part / whole : 0).toFixed(2)} %`;
export const signed = (number) => `${number < 0 ? '−' : '+'}${Math.abs(number).toFixed(2)}`;
export const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? '' : 's'}`;

const SCALES = {
  ns: [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']],
  bytes: [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']]
};
const NANOSECONDS = {
  ns: 1,
  us: 1e3,
  ms: 1e6,
  s: 1e9
};
// "1.5 ms" of 1,500,000 ns; with other units the number and the unit.
export const amount = (value, unit) => {
  const scale = unit in NANOSECONDS ? SCALES.ns : unit === 'bytes' ? SCALES.bytes : null;
  if (scale === null) {
    const shown = !Number.isInteger(value) ? value.toPrecision(5) :
        unit === ''                        ? String(value) :
                                             grouped(value);
    return `${shown} ${unit}`.trim();
  }
  const base = value * (NANOSECONDS[unit] || 1);
  let chosen = scale[0];
  for (const step of scale)
    if (Math.abs(base) >= step[0]) chosen = step;
  const number = base / chosen[0];
  return `${Number.isInteger(number) ? grouped(number) : number.toPrecision(4)} ${chosen[1]}`;
};

// To the last digit: "1,500,000 ns (1.5 ms)".
export const exactAmount = (value, unit) => {
  const exact = `${Number.isInteger(value) && unit !== '' ? grouped(value) : value} ${unit}`.trim(),
        shown = amount(value, unit);
  return exact === shown ? exact : `${exact} (${shown})`;
};

// A BigInt in a unit of a power of ten, with so many digits behind the point: more than a number of JavaScript has.
export const fixed = (number, unit, digits) => {
  const scale = BigInt(unit), left = 10n ** BigInt(digits), whole = (number * left + scale / 2n) / scale;
  const part = digits > 0 ? `.${String(whole % left).padStart(digits, '0')}` : '';
  return `${whole / left}${part}`;
};
