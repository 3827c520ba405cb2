// The script inside a picture of `tacho heatmap`. The picture is whole without it; this adds tooltips, keys, a choice of
// boxes with the argument of --box, and a width that fits the window. It asks no network for anything, and puts names into
// the document as text alone.
//
// What it reads: data-* of the picture (ns as whole numbers), <metadata class="rows"> (a line each, the lowest row first:
// "LOW HIGH WORDS"), and in <g class="boxes"> one <rect> for each box with samples: x= its column, y= its row from above,
// n= samples.
//
// The chosen boxes are in the address behind #, as the argument of --box, so a reload shows the same.
import {copyText, element, svgElement} from '../../browser/dom.js';
import {areaFacts, areaOf, boxAt, makeChoice, placeOf} from '../../browser/heat_map.js';
import {onKeys} from '../../browser/keys.js';
import {legendOf, makePicture} from '../../browser/picture.js';

const svg = document.currentScript.ownerSVGElement, view = document.defaultView;
const LEFT = 86, GAP = 10, LABEL_ROOM = 90, STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const setup = svg.dataset, total = Number(setup.total);
const begin = BigInt(setup.begin), interval = BigInt(setup.interval), SECOND = 1000000000n;
const plot = svg.querySelector('g.plot');

// ---- the map --------------------------------------------------------------------------------------------------------

const rows = plot === null ? [] : svg.querySelector('metadata.rows').textContent.split('\n').map((line) => {
  const [, low, high, words] = /^(-?\d+) (-?\d+) ([^]*)$/.exec(line);
  return {low, high, words};
});
const counts = new Map();
const map = plot === null ? null : {
  columns: Number(setup.columns), rows: rows.length, wide: 1, tall: Number(setup.row),
  count: (column, row) => counts.get(`${column} ${row}`) || 0
};
if (map !== null) {
  for (const rect of plot.querySelectorAll('g.boxes > rect')) {
    counts.set(`${rect.getAttribute('x')} ${map.rows - 1 - Number(rect.getAttribute('y'))}`, Number(rect.getAttribute('n')));
    rect.textContent = '';  // its <title>: there are better words
  }
}

const seconds = (time) => {
  const parts = String(time % SECOND).padStart(9, '0').replace(/0+$/, '');
  return String(time / SECOND) + (parts === '' ? '' : '.' + parts);
};
const timeOf = (column) => begin + BigInt(column) * interval;
const wordsOf = ({first, last, low, high}) => {
  const times = `${seconds(timeOf(first))}..${seconds(timeOf(last + 1))}`;
  if (setup.offset === '1') return `${times},${seconds(BigInt(rows[low].low))}..${seconds(BigInt(rows[high].high) + 1n)}`;
  return `${times},${rows[low].low}..${rows[high].high}`;
};
const valuesOf = ({low, high}) => {
  if (low === high) return rows[low].words;
  return `${rows[low].words.split(' to ')[0]} to ${rows[high].words.split(' to ').at(-1)}`;
};
const facts = (area) => areaFacts(map, area, {
  total, times: `${seconds(timeOf(area.first))} s to ${seconds(timeOf(area.last + 1))} s`,
  values: `${setup.name} ${valuesOf(area)}`
});

// ---- drawing --------------------------------------------------------------------------------------------------------

const chosenRect = svgElement('rect', {class: 'chosen', display: 'none'});

const drawTimes = (wide) => {
  const labels = plot.querySelector('g.times'), high = map.rows * map.tall;
  const step = STEPS.find((count) => count * map.wide >= LABEL_ROOM) || 1000, every = interval * BigInt(step);
  labels.textContent = '';
  for (let column = 0; column < map.columns; column++) {
    const x = column * map.wide;
    if (timeOf(column) % every !== 0n) continue;
    const isLast = x + LABEL_ROOM / 2 > wide + GAP;
    labels.append(svgElement('path', {d: `M${x.toFixed(1)} ${high}v6`}), svgElement('text', {
      x: (isLast ? wide + GAP : x).toFixed(1), y: high + 20, 'text-anchor': isLast ? 'end' : 'middle'
    }, `${seconds(timeOf(column))} s`));
  }
};
const drawChosen = () => {
  const chosen = choice.area();
  if (chosen === null) return chosenRect.setAttribute('display', 'none');
  const {x, y, width, height} = placeOf(map, chosen);
  chosenRect.removeAttribute('display');
  for (const [name, value] of [['x', x], ['y', y], ['width', Math.max(width, 2)], ['height', height]])
    chosenRect.setAttribute(name, value);
};
const draw = () => {
  const {width, top} = picture.begin();
  let bottom = top;
  if (map !== null) {
    const wide = width - LEFT - 2 * GAP;
    map.wide = wide / map.columns;
    plot.setAttribute('transform', `translate(${LEFT} ${top})`);
    plot.querySelector('.ground').setAttribute('width', wide);
    plot.querySelector('.boxes').setAttribute('transform', `scale(${map.wide} ${map.tall})`);
    drawTimes(wide);
    drawChosen();
    bottom += map.rows * map.tall + 44;
  }
  picture.end(bottom + picture.tallOf(picture.footBox));
};

// ---- around the map -------------------------------------------------------------------------------------------------

const KEYS = [
  ['arrows', 'the box beside'], ['Shift+arrows, drag', 'several boxes'], ['n, N', 'next and previous box with samples'],
  ['c', 'copy the command that explains the chosen boxes'], ['Esc, 0', 'no box'], ['back', 'undo'],
  ['?', 'this list']
];
const picture = makePicture(svg, KEYS);
const fillHead = () => {
  const keys = [...picture.staticHead.querySelectorAll('g.key')].map(
      (key) => [key.querySelector('rect').getAttribute('class'), key.querySelector('text').textContent]);
  picture.headBox.append(element('p', {class: 'legend'}, 'samples in a box: ', ...legendOf(keys)),
      element('p', {}, 'click or drag: boxes and the argument of --box · arrows, Shift+arrows · ? lists the keys'));
};
const commandOf = (area) => `${setup.command} --box ${wordsOf(area)}`;
const say = () => {
  const chosen = choice.area();
  picture.footBox.replaceChildren(...(chosen === null ? [] : [
    element('div', {}, facts(chosen).join(' · ')),
    element('div', {}, 'to explain these boxes: ', element('code', {}, commandOf(chosen)))
  ]));
  draw();
};
// Without a step of the history while boxes are being chosen.
const choice = makeChoice(() => map, say);
const keep = () => {
  const chosen = choice.area(), address = chosen === null ? '#' : '#box=' + wordsOf(chosen);
  if (address !== (location.hash || '#')) location.hash = address;
};
const fromAddress = () => {
  const form = /^#box=(\d[\d.]*?)\.\.(\d[\d.]*),(-?\d[\d.]*?)\.\.(-?\d[\d.]*)$/.exec(location.hash);
  const found = {first: -1, last: -1, low: -1, high: -1}, chosen = choice.area();
  if (form && map !== null) {
    for (let column = 0; column < map.columns; column++) {
      if (seconds(timeOf(column)) === form[1]) found.first = column;
      if (seconds(timeOf(column + 1)) === form[2]) found.last = column;
    }
    rows.forEach((row, i) => {
      const [low, high] = wordsOf({first: 0, last: 0, low: i, high: i}).split(',')[1].split('..');
      if (low === form[3]) found.low = i;
      if (high === form[4]) found.high = i;
    });
  }
  const isThere = found.first >= 0 && found.last >= found.first && found.low >= 0 && found.high >= found.low;
  const area = isThere ? wordsOf(found) : '';
  if (chosen !== null && area === wordsOf(chosen)) return;
  isThere ? choice.choose([found.first, found.low], [found.last, found.high]) : choice.clear();
};

// The box below the pointer; null: outside.
const boxBelow = (event) => {
  if (map === null) return null;
  const ground = plot.querySelector('.ground').getBoundingClientRect();
  return boxAt(map, (event.clientX - ground.left) / picture.scale(), (event.clientY - ground.top) / picture.scale());
};
const showTip = (event) => {
  const at = boxBelow(event), area = at === null ? null : areaOf(at, at);
  picture.showTip(event, area === null ? null : [...facts(area), `--box ${wordsOf(area)}`], 340);
};

// ---- keys and pointer -----------------------------------------------------------------------------------------------

const copy = () => {
  if (choice.area() !== null) copyText(picture.footBox.querySelector('code'));
};
const act = {
  ...choice.keys, c: copy, 0: choice.clear, '?': picture.toggleHelp,
  Escape: () => picture.helpBox.hidden ? choice.clear() : picture.toggleHelp()
};
for (const key in act) {
  const first = act[key];
  act[key] = (event) => {
    first(event);
    keep();
  };
}
onKeys(document, act);
let isDragging = false;
svg.addEventListener('pointerdown', (event) => {
  if (!picture.helpBox.hidden) picture.toggleHelp();
  const at = event.button === 0 && !picture.footBox.contains(event.target) ? boxBelow(event) : null;
  if (at === null) return;
  isDragging = true;
  choice.choose(event.shiftKey && choice.anchor() !== null ? choice.anchor() : at, at);
  event.preventDefault();
});
svg.addEventListener('pointermove', (event) => {
  showTip(event);
  const at = isDragging ? boxBelow(event) : null, corner = choice.corner();
  if (at !== null && (at[0] !== corner[0] || at[1] !== corner[1])) choice.choose(choice.anchor(), at);
});
svg.addEventListener('pointerleave', showTip);
view.addEventListener('pointerup', () => {
  if (isDragging) keep();
  isDragging = false;
});
view.addEventListener('resize', draw);
view.addEventListener('hashchange', fromAddress);
view.addEventListener('load', draw);  // Firefox has the heights of texts only after load

fillHead();
if (map !== null) plot.append(chosenRect);
svg.setAttribute('class', 'live');
picture.start('arrow keys go from box to box', draw);
draw();
fromAddress();
