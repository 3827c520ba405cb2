// The script inside a picture of `tacho heatmap`. The picture is whole without it; this adds tooltips, keys, a choice of
// boxes with the argument of --box, and a width that fits the window. It asks no network for anything, and puts names into
// the document as text alone.
//
// What it reads: data-* of the picture (ns as whole numbers), <metadata class="rows"> (a line each, the lowest row first:
// "LOW HIGH WORDS"), and in <g class="boxes"> one <rect> for each box with samples: x= its column, y= its row from above,
// n= samples.
//
// The chosen boxes are in the address behind #, as the argument of --box, so a reload shows the same.
(() => {
const svg = document.currentScript.ownerSVGElement, view = document.defaultView;
const LEFT = 86, GAP = 10, LABEL_ROOM = 90, STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const setup = svg.dataset, columns = Number(setup.columns), rowHeight = Number(setup.row), total = Number(setup.total);
const begin = BigInt(setup.begin), interval = BigInt(setup.interval), SECOND = 1000000000n;
const plot = svg.querySelector('g.plot');

const {html, svgElement, foreign, helpOf, addTip, showTip: showTipOf, hideTip} = pictureOf(svg);

// ---- the map --------------------------------------------------------------------------------------------------------

const rows = plot === null ? [] : svg.querySelector('metadata.rows').textContent.split('\n').map((line) => {
  const [, low, high, words] = /^(-?\d+) (-?\d+) ([^]*)$/.exec(line);
  return {low, high, words};
});
const counts = new Map();
if (plot !== null) {
  for (const rect of plot.querySelectorAll('g.boxes > rect')) {
    counts.set(`${rect.getAttribute('x')} ${rows.length - 1 - Number(rect.getAttribute('y'))}`, Number(rect.getAttribute('n')));
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
const countOf = ({first, last, low, high}) => {
  let sum = 0;
  for (let column = first; column <= last; column++)
    for (let row = low; row <= high; row++) sum += counts.get(`${column} ${row}`) || 0;
  return sum;
};
const facts = (area) => {
  const count = countOf(area), share = total > 0 ? (100 * count / total).toFixed(2) : '0.00';
  return [
    `${count.toLocaleString('en-US')} ${count === 1 ? 'sample' : 'samples'}, ${share} % of all`,
    `${seconds(timeOf(area.first))} s to ${seconds(timeOf(area.last + 1))} s`,
    `${setup.name} ${valuesOf(area)}`,
    `--box ${wordsOf(area)}`
  ];
};

// ---- drawing --------------------------------------------------------------------------------------------------------

let width = 1200, columnWidth = 1, chosen = null, anchor = null, corner = null;
const chosenRect = svgElement('rect', {class: 'chosen', display: 'none'});

const drawTimes = (wide) => {
  const labels = plot.querySelector('g.times'), high = rows.length * rowHeight;
  const step = STEPS.find((count) => count * columnWidth >= LABEL_ROOM) || 1000, every = interval * BigInt(step);
  labels.textContent = '';
  for (let column = 0; column < columns; column++) {
    const x = column * columnWidth;
    if (timeOf(column) % every !== 0n || x + LABEL_ROOM > wide + GAP) continue;
    labels.append(svgElement('path', {d: `M${x.toFixed(1)} ${high}v6`}),
        svgElement('text', {x: x.toFixed(1), y: high + 20}, `${seconds(timeOf(column))} s`));
  }
};
const drawChosen = () => {
  if (chosen === null) return chosenRect.setAttribute('display', 'none');
  const {first, last, low, high} = chosen;
  chosenRect.removeAttribute('display');
  chosenRect.setAttribute('x', first * columnWidth);
  chosenRect.setAttribute('y', (rows.length - 1 - high) * rowHeight);
  chosenRect.setAttribute('width', Math.max((last - first + 1) * columnWidth, 2));
  chosenRect.setAttribute('height', (high - low + 1) * rowHeight);
};
const draw = () => {
  width = Math.max(Math.min(view.innerWidth, document.documentElement.clientWidth || view.innerWidth), 200);
  svg.setAttribute('width', width);
  head.setAttribute('width', width);
  const top = headBox.getBoundingClientRect().height + GAP;
  head.setAttribute('height', top);
  let bottom = top;
  if (plot !== null) {
    const wide = width - LEFT - 2 * GAP;
    columnWidth = wide / columns;
    plot.setAttribute('transform', `translate(${LEFT} ${top})`);
    plot.querySelector('.ground').setAttribute('width', wide);
    plot.querySelector('.boxes').setAttribute('transform', `scale(${columnWidth} ${rowHeight})`);
    drawTimes(wide);
    drawChosen();
    bottom += rows.length * rowHeight + 44;
  }
  svg.setAttribute('height', Math.max(bottom + footBox.getBoundingClientRect().height, view.innerHeight));
  placeFoot();
};

// ---- around the map -------------------------------------------------------------------------------------------------

const staticHead = svg.querySelector('g.head'), headBox = html('div', {class: 'headbox'});
const fillHead = () => {
  headBox.append(html('h1', {}, svg.querySelector('title').textContent));
  for (const note of staticHead.querySelectorAll('text.note')) headBox.append(html('p', {}, note.dataset.text));
  const keys = [...staticHead.querySelectorAll('g.key')].flatMap((key) => {
    const look = key.querySelector('rect').getAttribute('class');
    const box = svgElement('svg', {width: 12, height: 12}, svgElement('rect', {width: 12, height: 12, class: look}));
    return [html('span', {}, box, ' ' + key.querySelector('text').textContent), ' '];
  });
  headBox.append(html('p', {class: 'legend'}, 'samples in a box: ', ...keys),
      html('p', {}, 'click or drag: boxes and the argument of --box · arrows, Shift+arrows · ? lists the keys'));
};
const head = foreign('head', headBox);
addTip();
const footBox = html('div', {class: 'foot', id: 'foot', role: 'status', 'aria-live': 'polite'});
const foot = foreign('feet', footBox);
const KEYS = [
  ['arrows', 'the box beside'], ['Shift+arrows, drag', 'several boxes'], ['n, N', 'next and previous box with samples'],
  ['c', 'copy the command that explains the chosen boxes'], ['Esc, 0', 'no box'], ['back', 'undo'],
  ['?', 'this list']
];
const helpBox = helpOf(KEYS);
const help = foreign('helps', helpBox);

const placeFoot = () => {
  foot.setAttribute('width', width);
  foot.setAttribute('height', 600);
  const tall = footBox.getBoundingClientRect().height;
  foot.setAttribute('height', tall);
  foot.setAttribute('x', view.scrollX);
  foot.setAttribute('y', view.scrollY + view.innerHeight - tall);
  help.setAttribute('x', view.scrollX);
  help.setAttribute('y', view.scrollY);
  help.setAttribute('width', helpBox.hidden ? 0 : width);
  help.setAttribute('height', helpBox.hidden ? 0 : view.innerHeight);
};
const commandOf = (area) => `${setup.command} --box ${wordsOf(area)}`;
const say = () => {
  if (chosen === null) {
    footBox.textContent = '';
  } else {
    footBox.replaceChildren(html('div', {}, facts(chosen).slice(0, 3).join(' · ')),
        html('div', {}, 'to explain these boxes: ', html('code', {}, commandOf(chosen))));
  }
  draw();
};
const areaOf = (one, other) => ({
  first: Math.min(one[0], other[0]), last: Math.max(one[0], other[0]),
  low: Math.min(one[1], other[1]), high: Math.max(one[1], other[1])
});
// Without a step of the history while boxes are being chosen.
const choose = (from, to) => {
  anchor = from;
  corner = to;
  chosen = from === null ? null : areaOf(from, to);
  say();
};
const keep = () => {
  const address = chosen === null ? '#' : '#box=' + wordsOf(chosen);
  if (address !== (location.hash || '#')) location.hash = address;
};
const fromAddress = () => {
  const form = /^#box=(\d[\d.]*?)\.\.(\d[\d.]*),(-?\d[\d.]*?)\.\.(-?\d[\d.]*)$/.exec(location.hash);
  const found = {first: -1, last: -1, low: -1, high: -1};
  if (form && plot !== null) {
    for (let column = 0; column < columns; column++) {
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
  isThere ? choose([found.first, found.low], [found.last, found.high]) : choose(null, null);
};

// [column, row] below the pointer; null: outside.
const boxAt = (event) => {
  if (plot === null) return null;
  const ground = plot.querySelector('.ground').getBoundingClientRect();
  const column = Math.floor((event.clientX - ground.left) / columnWidth);
  const row = rows.length - 1 - Math.floor((event.clientY - ground.top) / rowHeight);
  return column >= 0 && column < columns && row >= 0 && row < rows.length ? [column, row] : null;
};
const showTip = (event) => {
  const at = boxAt(event);
  if (at === null || event.pointerType === 'touch' || event.type === 'pointerleave') return hideTip();
  showTipOf(event, facts(areaOf(at, at)), width, 340);
};

// ---- keys and pointer -----------------------------------------------------------------------------------------------

const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
const move = (key, extends_) => {
  if (plot === null) return;
  if (chosen === null) return choose([0, 0], [0, 0]);
  const to = [corner[0] + MOVES[key][0], corner[1] + MOVES[key][1]];
  to[0] = Math.min(Math.max(to[0], 0), columns - 1);
  to[1] = Math.min(Math.max(to[1], 0), rows.length - 1);
  choose(extends_ ? anchor : to, to);
};
const boxes = [...counts.keys()].map((key) => key.split(' ').map(Number));  // as the file has them: by column
const toNext = (step) => {
  if (boxes.length === 0) return;
  const place = (box) => box[0] * rows.length + box[1], at = chosen === null ? -1 : place(corner);
  const later = step > 0 ? boxes.find((box) => place(box) > at) : boxes.findLast((box) => place(box) < at);
  const to = later || boxes.at(step > 0 ? 0 : -1);
  choose(to, to);
};
const copy = () => {
  if (chosen === null) return;
  const range = document.createRange(), selection = view.getSelection();
  range.selectNodeContents(footBox.querySelector('code'));
  selection.removeAllRanges();
  selection.addRange(range);
  // Where a browser does not let it, the words are chosen, and Ctrl+C copies them.
  if (view.navigator.clipboard) view.navigator.clipboard.writeText(commandOf(chosen)).catch(() => {});
};
const act = {
  n: () => toNext(1), N: () => toNext(-1), c: copy, 0: () => choose(null, null),
  '?': () => {
    helpBox.hidden = !helpBox.hidden;
    placeFoot();
  },
  Escape: () => helpBox.hidden ? choose(null, null) : act['?']()
};
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (Object.hasOwn(MOVES, event.key)) {
    move(event.key, event.shiftKey);
  } else if (Object.hasOwn(act, event.key)) {
    act[event.key]();
  } else {
    return;
  }
  keep();
  event.preventDefault();
});
let isDragging = false;
svg.addEventListener('pointerdown', (event) => {
  if (!helpBox.hidden) act['?']();
  const at = event.button === 0 && !footBox.contains(event.target) ? boxAt(event) : null;
  if (at === null) return;
  isDragging = true;
  choose(event.shiftKey && anchor !== null ? anchor : at, at);
  event.preventDefault();
});
svg.addEventListener('pointermove', (event) => {
  showTip(event);
  const at = isDragging ? boxAt(event) : null;
  if (at !== null && (at[0] !== corner[0] || at[1] !== corner[1])) choose(anchor, at);
});
svg.addEventListener('pointerleave', showTip);
view.addEventListener('pointerup', () => {
  if (isDragging) keep();
  isDragging = false;
});
view.addEventListener('scroll', placeFoot);
view.addEventListener('resize', draw);
view.addEventListener('hashchange', fromAddress);
view.addEventListener('load', draw);  // Firefox has the heights of texts only after load

fillHead();
staticHead.remove();
if (plot !== null) plot.append(chosenRect);
svg.setAttribute('class', 'live');
svg.removeAttribute('viewBox');  // one unit is one pixel
svg.setAttribute('tabindex', '0');
svg.setAttribute('aria-label', `${svg.querySelector('title').textContent}; arrow keys go from box to box, ? lists the keys`);
draw();
fromAddress();
})();
