// The looks of frames: a class for each, whose colours are in report/output/frame_colours.

// In the order of the legend.
export const KINDS = {
  a: '',
  u: 'user',
  i: 'inlined',
  k: 'kernel',
  j: 'JIT',
  b: 'BPF',
  n: 'without a symbol',
  v: 'waker',
  t: 'thread',
  c: 'several functions of a module',
  o: 'on the CPU',
  r: 'runnable',
  w: 'waiting',
  x: 'mark'
};
const ONE_SHADE = 'xaorw', SHADES = 3, MODULES = 10;

const hashes = new Map(), encoder = new TextEncoder();
const hashOf = (text) => {
  if (!hashes.has(text)) {
    let hash = 5;
    for (const byte of encoder.encode(text).subarray(0, 200)) hash = (hash * 31 + byte) % 1000003;
    hashes.set(text, hash);
  }
  return hashes.get(text);
};
// The rank of each module by its weight, of equal ones by name: the first ones in a legend have colours that differ.
export const moduleRanks = (weights) => new Map([...weights].filter(([module]) => module !== '')
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([module], rank) => [module, rank]));
const moduleClass = (module, ranks) => (ranks.has(module) ? `m${ranks.get(module) % MODULES}` : 'a0');
// Of fractions of all before and after; `noise`: a smaller change may be chance.
export const changeClass = (was, is, noise = 0) => {
  const size = Math.abs(is - was);
  const step = size < Math.max(0.0005, noise) ? 0 : size < 0.002 ? 1 : size < 0.01 ? 2 : size < 0.05 ? 3 : 4;
  return step === 0 ? 'd0' : (is > was ? 'p' : 'q') + step;
};
// `name`: {kind, text, module}; `ranks`: of modules
export const frameClass = (palette, name, ranks) => {
  if (palette === 'module') return moduleClass(name.module, ranks);
  return `${name.kind}${ONE_SHADE.includes(name.kind) ? 0 : hashOf(name.text) % SHADES}`;
};

// Legends: [[class, words]].
export const changeLegend = (more, same) =>
    [['p4', more], ['p1', 'a little more'], ['d0', same], ['q1', 'a little less'], ['q4', 'less']];
export const kindLegend = (kinds) =>
    Object.keys(KINDS).filter((kind) => KINDS[kind] !== '' && kinds.has(kind)).map((kind) => [`${kind}0`, KINDS[kind]]);
// `weights`: by module; the heaviest are shown.
export const moduleLegend = (weights, ranks) =>
    [...moduleRanks(weights).keys()].slice(0, 8).map((module) => [moduleClass(module, ranks), module]);
