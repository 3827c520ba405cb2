// The script's part of a picture (flame graph, heat map) around what it shows: head, tooltip, foot and list of keys, as
// HTML inside of the SVG, where text has lines.
import {element, svgElement} from './dom.js';
import {keyList} from './keys.js';
import {fillTip, tipPlace} from './tip.js';

const GAP = 10, TALLEST = 600, SHEET = 720;  // px
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
  helpBox.tabIndex = -1;
  for (const note of staticHead.querySelectorAll('text.note'))
    headBox.append(element('p', {}, note.dataset.text || note.textContent));
  let width = 1200, tall = view.innerHeight, isPrinted = false, least = 1;

  // A telephone shows a picture as wide as a desk's window, made smaller: one unit is then as many of its pixels.
  const scale = () => {
    least = Math.min(least, view.visualViewport ? view.visualViewport.scale : 1);
    return isPrinted || least > 0.8 ? 1 : 1 / least;
  };
  const tallOf = (box) => box.getBoundingClientRect().height / scale();
  const headHeight = () => tallOf(headBox), windowHeight = () => view.innerHeight / scale();
  // After scrolling, and when the foot or the list of keys has changed.
  const placeAround = () => {
    // The head stays visible when scrolled, unless it takes more than 40 % of the window.
    const stays = !isPrinted && headHeight() < 0.4 * windowHeight(), x = view.scrollX / scale(), y = view.scrollY / scale();
    place(head, {x: stays ? x : 0, y: stays ? y : 0});
    place(foot, {width, height: TALLEST});
    const high = isPrinted ? 0 : tallOf(footBox);
    place(foot, {x, y: y + windowHeight() - high, height: high});
    place(help, {x, y, width: helpBox.hidden ? 0 : width, height: helpBox.hidden ? 0 : windowHeight()});
  };
  const takeSize = () => place(svg, {width: width * scale(), height: tall * scale(), viewBox: `0 0 ${width} ${tall}`});
  // Takes the width of the window; where the picture begins, below the head: {width, top}.
  const begin = () => {
    // Width without the scroll bar.
    const room = Math.min(view.innerWidth, document.documentElement.clientWidth || view.innerWidth);
    width = isPrinted ? SHEET : Math.max(room / scale(), 200);
    takeSize();
    head.setAttribute('width', width);
    const top = headHeight() + GAP;
    head.setAttribute('height', top);
    return {width, top};
  };
  const end = (bottom) => {
    tall = Math.ceil(Math.max(bottom, isPrinted ? 0 : windowHeight()));  // so that scrolling does not end between pixels
    takeSize();
    if (isPrinted) place(svg, {width: '100%', height: '100%', preserveAspectRatio: 'xMidYMin'});
    placeAround();
  };
  const hideTip = () => {
    tipBox.hidden = true;
    tip.setAttribute('width', 0);
  };
  const showTip = (event, lines, widest = 420) => {
    if (lines === null || (event.pointerType === 'touch' && event.type !== 'click') || event.type === 'pointerleave') return hideTip();
    fillTip(tipBox, lines);
    tipBox.hidden = false;
    const wide = Math.min(widest, width - 2 * GAP);
    place(tip, {width: wide, height: TALLEST});
    const high = tallOf(tipBox) + 2, of = scale();
    const [x, y] = tipPlace(event.clientX / of, event.clientY / of, {width: wide, height: high}, width, windowHeight());
    place(tip, {x: view.scrollX / of + x, y: view.scrollY / of + y, height: high});
  };
  const toggleHelp = () => {
    helpBox.hidden = !helpBox.hidden;
    placeAround();
    (helpBox.hidden ? svg : helpBox).focus({preventScroll: true});
  };
  // `what`: "arrow keys walk through the frames"; `draw`: draws the picture again.
  const start = (what, draw) => {
    staticHead.remove();
    // On paper the picture is whole, and as large as the page.
    for (const [event, is] of [['beforeprint', true], ['afterprint', false]])
      view.addEventListener(event, () => {
        isPrinted = is;
        hideTip();
        draw();
      });
    svg.setAttribute('tabindex', '0');
    svg.setAttribute('aria-label', `${title}; ${what}, ? lists the keys`);
    view.addEventListener('scroll', placeAround);
  };
  return {
    headBox, footBox, helpBox, staticHead, headHeight, windowHeight, tallOf, scale, least: () => (isPrinted ? 1.5 : 0), placeAround, begin, end, showTip, hideTip, toggleHelp, start
  };
};
