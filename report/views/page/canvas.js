// Canvases: colours, a pen, an axis of times, drags; and the page's tooltip.
import {element} from '../../browser/dom.js';
import {FONT} from '../../browser/labels.js';
import {fillTip, tipPlace} from '../../browser/tip.js';

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
  context.font = FONT;
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
  tip.hidden = lines === null || event.pointerType === 'touch';
  if (tip.hidden) return;
  fillTip(tip, lines);
  const [x, y] = tipPlace(event, tip.getBoundingClientRect(), innerWidth);
  tip.style.left = `${x}px`;
  tip.style.top = `${y}px`;
};
