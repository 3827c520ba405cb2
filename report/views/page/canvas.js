// Canvases: colours, a pen, an axis of times, drags; and the page's tooltip.
import {element} from '../../browser/dom.js';
import {FONT} from '../../browser/labels.js';
import {roundStep} from '../../browser/ticks.js';
import {fillTip, tipPlace} from '../../browser/tip.js';
import {fixed} from '../../browser/words.js';

// The colour of a custom property of the style sheet, which knows dark and light.
const colours = new Map();
export const colour = (name) => {
  if (!colours.has(name))
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
};
export const isPrinted = () => document.documentElement.classList.contains('print');
export const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches && !isPrinted();
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
  context.font = FONT;
  context.direction = 'ltr';
  context.textBaseline = 'middle';
  return context;
};

// px at the left of all canvases with times, for the names of rows.
export const gutter = (width) => (width < 600 ? 124 : 190);

// A time axis at the bottom of a canvas: of ns from the start of the capture, with as many digits as neighbours differ in.
// `zero`: the time of that start on the axis, a BigInt.
export const AXIS = 18;
export const drawAxis = (context, from, to, width, y, zero) => {
  const step = roundStep((to - from) / Math.max(Math.floor(width / 110), 3)), first = zero + BigInt(Math.ceil(from));
  const [unit, name] = zero > 0n || to >= 1e9 ? [1e9, 's'] : to >= 1e6 ? [1e6, 'ms'] : to >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const digits = Math.max(Math.round(Math.log10(unit) - Math.floor(Math.log10(step))), 0), each = BigInt(step);
  context.fillStyle = colour('muted');
  context.textAlign = 'center';
  for (let time = (first + each - 1n) / each * each; time - zero <= BigInt(Math.floor(to)); time += each) {
    const words = time === 0n ? '0' : `${fixed(time, unit, digits)} ${name}`, half = context.measureText(words).width / 2;
    const x = (Number(time - zero) - from) / (to - from) * width;
    context.fillText(words, Math.min(Math.max(x, half), width - half), y + AXIS / 2 + 1);
    context.fillRect(Math.min(x, width - 1), y, 1, 3);
  }
  context.textAlign = 'left';
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
const showTip = (event, lines) => {
  if (tip === null) {
    tip = element('div', {class: 'tip', hidden: true});
    document.body.append(tip);
    addEventListener('pointerdown', () => { tip.hidden = true; }, true);
  }
  tip.hidden = lines === null;
  if (tip.hidden) return;
  fillTip(tip, lines);
  const [x, y] = tipPlace(event.clientX, event.clientY, tip.getBoundingClientRect(), innerWidth, innerHeight);
  tip.style.left = `${x}px`;
  tip.style.top = `${y}px`;
};
// Tooltips of a canvas, on a touch screen by a tap; `factsAt(x, y)`: lines, or null.
export const tipsOn = (canvas, factsAt) => {
  const show = (event) => {
    if ((event.pointerType === 'touch') === (event.type === 'pointerup'))
      showTip(event, event.type === 'pointerleave' ? null : factsAt(event.offsetX, event.offsetY));
  };
  for (const type of ['pointermove', 'pointerup', 'pointerleave']) canvas.addEventListener(type, show);
};
