// Numbers as text.

// Weights of folded text may be below 1.
export const grouped = (number) => (Math.abs(number) < 100 ? Number(number.toPrecision(3)) : Math.round(number))
    .toLocaleString('en-US', {maximumFractionDigits: 20});
export const share = (part, whole) => `${(whole > 0 ? 100 * part / whole : 0).toFixed(2)} %`;
export const signed = (number) => `${number < 0 ? '−' : '+'}${Math.abs(number).toFixed(2)}`;
export const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? '' : 's'}`;
export const matching = (number, noun) => `${counted(number, noun)} ${number === 1 ? 'matches' : 'match'}`;

const SCALES = {
  ns: [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']],
  counts: [[1, ''], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
  bytes: [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']]
};
const NANOSECONDS = {
  ns: 1,
  us: 1e3,
  ms: 1e6,
  s: 1e9
};
// As quantity_text() of the programs: "6" if it is exactly that, else "6.00", "14.2", "380".
const threeDigits = (number) => {
  const size = Math.abs(number);
  if (Number.isInteger(number) || size >= 99.95) return grouped(Math.round(number));
  return size >= 9.995 ? number.toFixed(1) :
      size >= 0.9995   ? number.toFixed(2) :
                         String(Number(number.toPrecision(3)));
};
// "1.50 ms" of 1,500,300 ns; with other units the number and the unit, exact below a million, and without a unit.
export const amount = (value, unit) => {
  const isExact = Number.isInteger(value) && (unit === '' || Math.abs(value) < 1e6);
  const scale = Object.hasOwn(NANOSECONDS, unit) ? SCALES.ns : unit === 'bytes' ? SCALES.bytes : SCALES.counts;
  if (scale === SCALES.counts && isExact) return `${unit === '' ? value : grouped(value)} ${unit}`.trim();
  const base = scale === SCALES.ns ? value * NANOSECONDS[unit] : value;
  let chosen = scale[0];
  for (const step of scale)
    if (Math.abs(base) >= step[0] * 0.9995) chosen = step;
  const shown = [threeDigits(base / chosen[0]), chosen[1], scale === SCALES.counts ? unit : ''];
  return shown.filter((word) => word !== '').join(' ');
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
