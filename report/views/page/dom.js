// Elements, numbers as text, canvases. Names from captures become text nodes alone, never markup.

export const element = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name);
  for (const key in attributes) {
    if (key.startsWith('on'))
      made.addEventListener(key.slice(2), attributes[key]);
    else if (attributes[key] === true)
      made.setAttribute(key, '');
    else if (attributes[key] !== false && attributes[key] !== undefined)
      made.setAttribute(key, attributes[key]);
  }
  made.append(...inside);
  return made;
};
// `text`: a text, or a list of texts and elements.
export const button = (text, title, action, attributes = {}) =>
    element('button', {type: 'button', title, onclick: action, ...attributes}, ...[text].flat());

export const grouped = (number) => Math.round(number).toLocaleString('en-US');
export const share = (part, whole) => `${(whole > 0 ? 100 * part / whole : 0).toFixed(2)} %`;

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

// The colour of a custom property of the style sheet, which knows dark and light.
const colours = new Map();
export const colour = (name) => {
  if (!colours.has(name))
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
};
export const forgetColours = () => colours.clear();

// A canvas as large as it is shown, in pixels of the screen; drawing is in those of the page.
export const pen = (canvas, width, height) => {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.max(Math.round(width * ratio), 1);
  canvas.height = Math.max(Math.round(height * ratio), 1);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.direction = 'ltr';
  context.textBaseline = 'middle';
  return context;
};

// The least of 1, 2, 5, 10, 20, ... that is not below.
const roundStep = (least) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * [1, 2, 5, 10].find((times) => times * power >= least);
};
// A time axis at the bottom of a canvas: ns from the start of the capture, with as many digits as neighbours differ in.
export const AXIS = 18;
export const drawAxis = (context, from, to, width, y) => {
  const step = roundStep((to - from) / Math.max(Math.floor(width / 110), 1));
  const [unit, name] = to >= 1e9 ? [1e9, 's'] : to >= 1e6 ? [1e6, 'ms'] : to >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const digits = Math.max(Math.round(Math.log10(unit) - Math.floor(Math.log10(step))), 0);
  context.fillStyle = colour('muted');
  context.textAlign = 'center';
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const words = at === 0 ? '0' : `${(at / unit).toFixed(digits)} ${name}`, half = context.measureText(words).width / 2;
    const x = (at - from) / (to - from) * width;
    context.fillText(words, Math.min(Math.max(x, half), width - half), y + AXIS / 2 + 1);
    context.fillRect(Math.min(x, width - 1), y, 1, 3);
  }
  context.textAlign = 'left';
};

// As much of a text as fits, in the pen's font.
const widths = new Map();
export const fitted = (context, text, width) => {
  if (width < 16) return '';
  const most = Math.ceil(width / 3);
  const shown = text.length > most ? text.slice(0, most) : text;
  if (!widths.has(shown)) {
    if (widths.size > 20000) widths.clear();
    widths.set(shown, context.measureText(shown).width);
  }
  const wide = widths.get(shown);
  if (wide <= width && shown.length === text.length) return text;
  const fit = Math.floor(shown.length * (width - 8) / wide);
  return fit < 2 ? '' : `${shown.slice(0, fit)}…`;
};

// Drags on a canvas: `moved(x0, y0, x1, y1)` while it lasts, `ended` with the same, `clicked(x, y, event)`
// when nothing moved.
export const dragOn = (canvas, {moved, ended, clicked}) => {
  let start = null, isDrag = false;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    start = at(event);
    isDrag = false;
    if (event.pointerType !== 'touch') canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (start === null) return;
    const [x, y] = at(event);
    isDrag = isDrag || Math.abs(x - start[0]) > 3 || Math.abs(y - start[1]) > 3;
    if (isDrag) moved(...start, x, y);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (start === null) return;
    const from = start, to = at(event);
    start = null;
    if (isDrag)
      ended(...from, ...to);
    else
      clicked(...to, event);
  });
  canvas.addEventListener('pointercancel', () => {
    start = null;
  });
};

let tip = null;
export const showTip = (event, lines) => {
  if (tip === null) {
    tip = element('div', {class: 'tip', hidden: true});
    document.body.append(tip);
  }
  if (lines === null || event.pointerType === 'touch') {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(...lines.map((line, i) => element(i === 0 ? 'strong' : 'div', {}, line)));
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(event.clientX + 12, innerWidth - width - 8), 0)}px`;
  const isLow = event.clientY + 20 + height > innerHeight;
  tip.style.top = `${Math.max(isLow ? event.clientY - height - 8 : event.clientY + 18, 0)}px`;
};

// A name that breaks into lines after its separators.
export const breakable = (text) =>
    text.split(/(?<=::|[,/_<])(?=[^\s:])/).flatMap((part, i) => (i === 0 ? [part] : [element('wbr'), part]));

// Bare text is found whatever its case; /regex/ and /regex/i are regular expressions. {test, fault}
export const matcher = (wanted) => {
  const form = /^\/([^]+)\/(i?)$/.exec(wanted);
  if (!form) {
    const lower = wanted.toLowerCase();
    return {test: (text) => text.toLowerCase().includes(lower), fault: ''};
  }
  try {
    const regex = new RegExp(form[1], form[2]);
    return {test: (text) => regex.test(text), fault: ''};
  } catch (fault) {
    return {test: () => false, fault: fault.message};
  }
};
