// The script's part of a picture (flame graph, heat map) around what it shows: head, tooltip, foot and list of keys, as
// HTML inside of the SVG, where text has lines.
import {element, svgElement} from './dom.js';
import {keyList} from './keys.js';
import {fillTip, tipPlace} from './tip.js';

const GAP = 10, TALLEST = 600;  // px
const view = document.defaultView;

export const legendOf = (keys) => keys.flatMap(([look, words]) => {
  const box = svgElement('svg', {width: 12, height: 12}, svgElement('rect', {width: 12, height: 12, class: look}));
  return [element('span', {}, box, ` ${words}`), ' '];
});

// `keys`: their list.
export const makePicture = (svg, keys) => {
  const foreign = (name, ...inside) => {
    const made = svgElement('foreignObject', {class: name}, ...inside);
    svg.append(made);
    return made;
  };
  const place = (made, attributes) => {
    for (const name in attributes) made.setAttribute(name, attributes[name]);
  };
  const title = svg.querySelector('title').textContent, staticHead = svg.querySelector('g.head');
  const headBox = element('div', {class: 'headbox'}, element('h1', {}, title)), head = foreign('head', headBox);
  const tipBox = element('div', {class: 'tip', id: 'tip', hidden: true}), tip = foreign('tips', tipBox);
  const footBox = element('div', {class: 'foot', id: 'foot', role: 'status', 'aria-live': 'polite'});
  const foot = foreign('feet', footBox);
  const helpBox = element('div', {class: 'help', id: 'help', role: 'dialog', 'aria-label': 'keys', hidden: true}, keyList(keys));
  const help = foreign('helps', helpBox);
  for (const note of staticHead.querySelectorAll('text.note'))
    headBox.append(element('p', {}, note.dataset.text || note.textContent));
  let width = 1200;

  const headHeight = () => headBox.getBoundingClientRect().height;
  // After scrolling, and when the foot or the list of keys has changed.
  const placeAround = () => {
    // The head stays visible when scrolled, unless it takes more than 40 % of the window.
    const stays = headHeight() < 0.4 * view.innerHeight, x = view.scrollX, y = view.scrollY;
    place(head, {x: stays ? x : 0, y: stays ? y : 0});
    place(foot, {width, height: TALLEST});
    const tall = footBox.getBoundingClientRect().height;
    place(foot, {x, y: y + view.innerHeight - tall, height: tall});
    place(help, {x, y, width: helpBox.hidden ? 0 : width, height: helpBox.hidden ? 0 : view.innerHeight});
  };
  // Takes the width of the window; where the picture begins, below the head: {width, top}.
  const begin = () => {
    // Width without the scroll bar.
    width = Math.max(Math.min(view.innerWidth, document.documentElement.clientWidth || view.innerWidth), 200);
    svg.setAttribute('width', width);
    head.setAttribute('width', width);
    const top = headHeight() + GAP;
    head.setAttribute('height', top);
    return {width, top};
  };
  const end = (bottom) => {
    svg.setAttribute('height', Math.max(bottom, view.innerHeight));
    placeAround();
  };
  const hideTip = () => {
    tipBox.hidden = true;
    tip.setAttribute('width', 0);
  };
  const showTip = (event, lines, widest = 420) => {
    if (lines === null || event.pointerType === 'touch' || event.type === 'pointerleave') return hideTip();
    fillTip(tipBox, lines);
    tipBox.hidden = false;
    const wide = Math.min(widest, width - 2 * GAP);
    place(tip, {width: wide, height: TALLEST});
    const tall = tipBox.getBoundingClientRect().height + 2;
    const [x, y] = tipPlace(event, {width: wide, height: tall}, width);
    place(tip, {x: view.scrollX + x, y: view.scrollY + y, height: tall});
  };
  const toggleHelp = () => {
    helpBox.hidden = !helpBox.hidden;
    placeAround();
  };
  // `what`: "arrow keys walk through the frames".
  const start = (what) => {
    staticHead.remove();
    svg.removeAttribute('viewBox');  // one unit is one pixel
    svg.setAttribute('tabindex', '0');
    svg.setAttribute('aria-label', `${title}; ${what}, ? lists the keys`);
    view.addEventListener('scroll', placeAround);
  };
  return {
    headBox, footBox, helpBox, staticHead, headHeight, placeAround, begin, end, showTip, hideTip, toggleHelp, start
  };
};
