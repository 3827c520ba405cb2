// The script in an SVG of `tacho flamegraph`: zoom, search, keys and other views of the same frames. The SVG is complete
// without it. The script uses no network, and adds names to the document only as text nodes.
//
// Input: <metadata class="modules"> (one line each: none, and then by weight), <metadata class="names"> (one line each: "KIND MODULE NAME"), <metadata
// class="lines"> (the source line of each name, may be empty), and in each <g class="pane"> one <rect> for each frame,
// callers first: n= number of its name, w= total, s= self; in a difference b= total before, a= total after, e= noise of
// the percentage. A frame's row is its depth. Frames that are too thin to be drawn are in packed data (write_thin() in
// flame_graph.cc): they are read after the first drawing, searched, and drawn where a zoom makes them wide enough.
//
// The state is in the URL fragment, so that a reload shows the same, and back and forward undo and redo.
import {button, copyText, element, svgElement} from '../../browser/dom.js';
import {changeFact, frameAt, frameFacts, gapText, layOut, matchAfter, pointsText} from '../../browser/flame_graph.js';
import {changeClass, changeLegend, frameClass, KINDS, kindLegend, moduleLegend} from '../../browser/frame_looks.js';
import {onKeys} from '../../browser/keys.js';
import {FONT, fitted, fittedShare} from '../../browser/labels.js';
import {legendOf, makePicture} from '../../browser/picture.js';
import {makeSearchField, matcher} from '../../browser/search.js';
import {amount, grouped, matching, share} from '../../browser/words.js';
import {callersOf, changedTree, matched, readThin, readTree} from './flame_tree.js';

const svg = document.currentScript.ownerSVGElement, view = document.defaultView;
const setup = svg.dataset;
// LEAST: px, the least width of a drawn frame; MOST: drawn frames, of more the widest.
const ROW = 17, BOX = 16, GAP = 10, LEAST = Math.max(0.3, Number(setup.least)), MOST = 20000;
const isDifference = setup.before !== undefined;

const lines = (name) => {
  const found = svg.querySelector('metadata.' + name), text = found ? found.textContent : '';
  return text === '' ? [] : text.split('\n');
};
const modules = lines('modules'), sourceLines = lines('lines'), ranks = new Map(modules.slice(1).map((module, rank) => [module, rank]));
// Distinct functions; `id` is the index.
const names = lines('names').map((line, id) => {
  const [, kind, module, text] = /^(\w) (\d+) ([^]*)$/.exec(line);
  return {id, kind, module: modules[+module] || '', text, line: sourceLines[id] || ''};
});

// ---- the state in the URL fragment ---------------------------------------------------------------------------------

const palettes = ['safe', 'warm', 'module', 'wait'].concat(isDifference ? ['change'] : []);
// `zoom`: of each graph the place of a frame in its tree; `graph`: or 'callers', from the leaves up; `around`: a function whose
// callers and callees are shown instead.
const UNCHANGED = {focus: '', hide: [], modules: [], recursion: false};
const initial = () => ({
  zoom: panes.map(() => '0'), graph: 'callees', around: '', search: '', inverted: setup.inverted === '1', palette: setup.palette,
  ...UNCHANGED
});
let state;

const readState = () => {
  const asked = new URLSearchParams(location.hash.slice(1)), read = initial();
  const zooms = (asked.get('zoom') || '').split(',');
  panes.forEach((pane, i) => { read.zoom[i] = zooms[i] || '0'; });
  if (asked.get('graph') === 'callers') read.graph = 'callers';
  read.around = asked.get('around') || '';
  read.search = asked.get('search') || '';
  if (asked.has('inverted')) read.inverted = asked.get('inverted') === '1';
  if (palettes.includes(asked.get('palette'))) read.palette = asked.get('palette');
  read.focus = asked.get('focus') || '';
  read.hide = asked.getAll('hide');
  read.modules = asked.getAll('module');
  read.recursion = asked.get('recursion') === '1';
  return read;
};
const addressOf = (wanted) => {
  const usual = initial(), params = new URLSearchParams();
  if (wanted.zoom.some((zoom) => zoom !== '0')) params.set('zoom', wanted.zoom.join(','));
  if (wanted.graph !== usual.graph) params.set('graph', wanted.graph);
  if (wanted.around !== '') params.set('around', wanted.around);
  if (wanted.search !== '') params.set('search', wanted.search);
  if (wanted.inverted !== usual.inverted) params.set('inverted', wanted.inverted ? '1' : '0');
  if (wanted.palette !== usual.palette) params.set('palette', wanted.palette);
  if (wanted.focus !== '') params.set('focus', wanted.focus);
  wanted.hide.forEach((name) => params.append('hide', name));
  wanted.modules.forEach((name) => params.append('module', name));
  if (wanted.recursion) params.set('recursion', '1');
  return '#' + params.toString();
};
// A new state, which the browser's back undoes. Every change goes through the URL, so that links and reloads show it.
const go = (changes) => {
  const address = addressOf({...state, ...changes});
  if (address === (location.hash || '#')) return;
  location.hash = address;  // fires the event hashchange
};
const TREE = ['graph', 'around', 'focus', 'recursion', 'hide', 'modules'];
const changesTree = (a, b) => TREE.some((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
const plantTrees = (pane) => {
  const {around} = state, {callers} = pane, stacks = pane.stacks = callers.stacks = changedTree(pane.base, state, names);
  pane.tree = around !== ''    ? changedTree(stacks, {...UNCHANGED, focus: around, isTop: true}, names) :
      state.graph === 'callers' ? callersOf(stacks, '') :
                                  stacks;
  callers.tree = around === '' ? null : callersOf(stacks, around);
};

// `hasMore`: the graphs have got more frames, behind those that they had.
const apply = (hasMore = false) => {
  const before = state;
  state = readState();
  if (hasMore) state.search = before.search;  // may still be typed
  if (!before || hasMore || changesTree(before, state)) {
    panes.forEach((pane) => {
      const place = hasMore ? pane.tree.placeOf(pane.selected) : '0';
      plantTrees(pane);
      pane.selected = pane.tree.nodeAt(place);
      pane.callers.selected = 0;
    });
    if (state.around === '') current %= panes.length;
  }
  panes.forEach((pane, i) => {
    pane.top = state.around === '' ? pane.tree.nodeAt(state.zoom[i]) : 0;
    if (before && before.zoom[i] !== state.zoom[i]) pane.selected = pane.top;
  });
  if (searchField.value !== state.search && document.activeElement !== searchField) searchField.value = state.search;
  paletteField.value = state.palette;
  show();
  const isElsewhere = !before || changesTree(before, state) || before.inverted !== state.inverted ||
      before.zoom.join() !== state.zoom.join();
  if (isElsewhere) showRoot();
};

// ---- search -------------------------------------------------------------------------------------------------------

let searchFault = '', isFound = () => false;  // a name
const findMatches = () => {
  const {test, fault} = matcher(state.search), known = new Map();
  searchFault = fault === '' ? '' : `${state.search}: ${fault}`;
  isFound = (name) => {
    if (state.search === '') return false;
    if (!known.has(name)) known.set(name, test(name.text));
    return known.get(name);
  };
};
const isMatch = (pane, i) => i > 0 && isFound(pane.tree.frame(i));
const isDrawn = (pane, i) => pane.layout.places.has(i);

// ---- words --------------------------------------------------------------------------------------------------------

// Percentages of the graph of frames that are gone are of the total before.
const allOf = (pane) => pane.kind === 'gone' ? pane.before : pane.base.total(0);
// In a difference: fractions of the total before and after.
const changeOf = (pane, i) => [
  pane.before > 0 ? pane.tree.total(i, 1) / pane.before : 0, pane.after > 0 ? pane.tree.total(i, 2) / pane.after : 0
];
const noiseOf = ({tree}, i) => (tree.noise ? tree.noise[i] : 0);  // not known of callers
const changeText = (pane, i) => {
  const [was, is] = changeOf(pane, i), noise = setup.noise && pane.tree.noise ? ` (noise ${(100 * noiseOf(pane, i)).toFixed(2)})` : '';
  if (setup.per === undefined) return changeFact(was, is, [setup.was, setup.is]) + noise;
  const cost = (weight) => `${+(weight / Number(setup.units)).toPrecision(4)} ${pane.unit}`.trim();
  return `per ${setup.per} ${cost(pane.tree.total(i, 1))} before, ${cost(pane.tree.total(i, 2))} after: ` +
      `${pointsText(was, is)}${noise} of all before`;
};
const facts = (pane, i) => {
  const name = pane.tree.frame(i), shown = (weight) => (pane.unit === '' ? grouped(weight) : amount(weight, pane.unit));
  const lines = frameFacts(pane.tree, i, {
    name, kind: KINDS[name.kind], self: pane.tree.self?.[i], top: pane.top, all: allOf(pane), whole: 'all', shown
  });
  return isDifference ? [...lines, changeText(pane, i)] : lines;
};

// What the search found in a graph.
const matchesText = (pane) => {
  const {stacks, tree, top} = pane, isShown = tree === stacks, isHit = (i) => i > 0 && isFound(stacks.name[i]);
  const drawn = (i) => !isShown || isDrawn(pane, i), inAll = matched(stacks, isHit, 0, drawn);
  let text = `${matching(inAll.count, 'frame')}: ${share(inAll.sum, allOf(pane))} of all`;
  const inView = isShown && top !== 0 ? matched(stacks, isHit, top, drawn) : inAll;
  if (inView !== inAll) text += `, ${share(inView.sum, tree.total(top))} of the view`;
  if (inView.hidden > 0) text += `; this counts ${grouped(inView.hidden)} that are too thin to be drawn`;
  if (pane.leftOut > 0) text += `; ${share(pane.leftOut, 1)} of all is in callees that are not in the file and not searched`;
  return text;
};
const tell = () => {
  const words = [];
  if (searchFault !== '') {
    words.push(`not a regular expression: ${searchFault}`);
  } else if (state.search !== '' && thin === 'awaited') {
    words.push('reading the frames that are too thin to be drawn');
  } else if (state.search !== '') {
    if (thin !== 'read') words.push(`frames that are too thin to be drawn cannot be read (${thin}) and are not counted`);
    if (panes.some((pane) => pane.unit !== panes[0].unit))
      panes.filter((pane) => pane.kind === 'all').forEach((pane) => words.push(`${pane.events}: ${matchesText(pane)}`));
    else
      words.push(matchesText(all[current]));
  }
  const changes = [];
  if (state.focus !== '') changes.push(`only what ${state.focus} calls`);
  state.hide.forEach((name) => changes.push(`without ${name}`));
  state.modules.forEach((name) => changes.push(`${name} as one`));
  if (state.recursion) changes.push('recursion as one');
  if (state.around !== '')
    changes.push(panes.some((pane) => pane.tree.total(0) > 0) ? `callers and callees of ${state.around}` : `no stack has ${state.around}`);
  else if (state.graph === 'callers')
    changes.push('bottom-up: from each function to its callers');
  if (changes.length > 0) words.push(changes.join('; '));
  matchText.textContent = words.join(' \u00b7 ');
};

// ---- drawing ------------------------------------------------------------------------------------------------------

const classOf = (pane, i) => state.palette === 'change' && isDifference ?
    changeClass(...changeOf(pane, i), noiseOf(pane, i)) : frameClass(state.palette, pane.tree.frame(i), ranks);
const legend = () => {
  if (state.palette === 'change') {
    return changeLegend(
        setup.per === undefined ? `more of all than ${setup.was}` : `costs more per ${setup.per} than before`,
        setup.noise ? 'as much, within the noise' : 'as much');
  }
  if (state.palette !== 'module')
    return kindLegend(new Set(panes.flatMap(({stacks}) => stacks.name.map((name) => name.kind))));
  const weights = new Map(), {stacks} = panes[0];
  stacks.name.forEach((name, i) => weights.set(name.module, (weights.get(name.module) || 0) + stacks.own[i]));
  return moduleLegend(weights, ranks);
};

let width = 1200;
// If the graph is higher than the window, scrolls to its root.
const showRoot = () => {
  view.scrollTo(0, state.inverted ? 0 : Math.max((panes[current % panes.length].bottom + FOOT - picture.windowHeight()) * picture.scale(), 0));
  picture.placeAround();
};
const draw = () => {
  svg.setAttribute('class', `live ${state.palette}${panes.some(({stacks}) => stacks.name.some((name, i) => i > 0 && isFound(name))) ? ' searching' : ''}`);
  legendText.replaceChildren(...legendOf(legend()));
  let top;
  ({width, top} = picture.begin());
  for (const pane of all) pane.group.setAttribute('display', 'none');
  for (const pane of panes) {
    const both = state.around === '' ? [pane] : [pane, pane.callers];
    for (const one of state.inverted ? both.reverse() : both) top = drawPane(one, top);
  }
  picture.end(top + FOOT);
};

// Draws the state, below its words: more lines of these move the graphs.
const show = () => {
  findMatches();
  draw();
  const before = picture.headHeight();
  tell();
  if (picture.headHeight() !== before) draw();
};

// The element with this place among those that a graph has already; attributes that all have are set when it is made.
const elementAt = (made, place, group, name, attributes) => {
  if (place === made.length) made.push(group.appendChild(svgElement(name, attributes)));
  made[place].removeAttribute('display');
  return made[place];
};
// Whether callees, or in a graph of callers these, are below.
const isDown = (pane) => state.inverted !== pane.isOfCallers;
const headingOf = (pane) => [
  pane.words, state.around === '' ? '' : `${pane.isOfCallers ? 'Callers' : 'Callees'} of ${state.around}`
].filter((words) => words !== '').join(': ');
const drawPane = (pane, y) => {
  const {tree, rects, texts, top} = pane, room = width - 2 * GAP, heading = headingOf(pane);
  const layout = pane.layout = layOut(tree, {top, width: room, least: Math.max(LEAST, picture.least()), most: MOST});
  const base = y + (heading === '' ? 0 : 22);
  pane.group.removeAttribute('display');
  pane.group.setAttribute('transform', `translate(0 ${base})`);
  pane.heading.textContent = fitted(heading, room, pen);
  let labels = 0;
  layout.nodes.forEach((i, place) => {
    const x = GAP + layout.x[place], wide = layout.w[place], row = layout.row[place], name = tree.frame(i), {text, kind} = name;
    const isHit = isMatch(pane, i), at = (isDown(pane) ? row : layout.rows - 1 - row) * ROW;
    const rect = elementAt(rects, place, pane.frames, 'rect', {height: BOX});
    rect.frame = i;
    rect.pane = pane.number;
    rect.setAttribute('x', x.toFixed(1));
    rect.setAttribute('y', at);
    rect.setAttribute('width', wide.toFixed(1));
    rect.setAttribute('class', classOf(pane, i) + (isHit ? ' match' : '') + (pane.isMarked.has(name) ? ' marked' : '') +
        (row < layout.upTo ? ' up' : ''));
    const shown = fitted(text, wide - 6, pen);
    if (shown === '') return;
    const label = elementAt(texts, labels++, pane.labels, 'text', {});
    label.setAttribute('x', (x + 3).toFixed(1));
    label.setAttribute('y', at + 12);
    label.setAttribute('class', isHit ? 'match' : kind === 'x' && state.palette !== 'module' ? 'x' : '');
    label.textContent = shown;
  });
  for (const unused of [...rects.slice(layout.nodes.length), ...texts.slice(labels)]) unused.setAttribute('display', 'none');
  drawGaps(pane);
  placeCursor(pane);
  pane.bottom = base + layout.rows * ROW + GAP;
  return pane.bottom;
};

const drawGaps = (pane) => {
  const {layout} = pane;
  pane.gaps.replaceChildren(...layout.gaps.flatMap((gap) => {
    const x = GAP + gap.x, y = (isDown(pane) ? gap.row : layout.rows - 1 - gap.row) * ROW,
          words = gapText(gap, allOf(pane), thin === 'read' ? 'not in the file' : 'thinner');
    const rect = svgElement('rect', {x: x.toFixed(1), y, width: gap.w.toFixed(1), height: BOX});
    const tip = `below ${pane.tree.frame(gap.caller).text}: zoom in for what is thinner`;
    Object.assign(rect, {frame: gap.caller, pane: pane.number, tip: state.around === '' ? [words, tip] : [words]});
    const shown = fittedShare(words, gap.w - 6, pen);
    return shown === '' ? [rect] : [rect, svgElement('text', {x: (x + 3).toFixed(1), y: y + 12}, shown)];
  }));
};

const placeCursor = (pane) => {
  const place = pane.layout.places.get(pane.selected);
  if (pane.number !== current || place === undefined || !hasCursor) return pane.cursor.setAttribute('display', 'none');
  const rect = pane.rects[place], wide = pane.layout.w[place], around = wide < 8 ? 2.5 : 0;  // thin frames are seen inside of it
  pane.cursor.removeAttribute('display');
  pane.cursor.setAttribute('x', Number(rect.getAttribute('x')) - around);
  pane.cursor.setAttribute('y', rect.getAttribute('y'));
  pane.cursor.setAttribute('width', Math.max(wide, 1) + 2 * around);
};

// ---- head and foot of the picture -------------------------------------------------------------------------------------------

const KEYS = [
  ['arrows', 'to the caller, to what it calls, to the frames beside it'], ['Enter, click', 'zoom in'],
  ['Esc', 'one step out: help, search, zoom'], ['0', 'everything as at first'], ['/', 'search'],
  ['n, N', 'next and previous match'], ['f', 'only what the selected function calls'],
  ['h, Alt+click', 'without the selected function'], ['r', 'recursive calls as one frame'],
  ['m', 'the selected module as one frame'], ['c', 'callers and callees of the selected function'],
  ['b', 'bottom-up: from each function to its callers'], ['i', 'callers above or below'], ['p', 'other colours'],
  ['y', 'copy the selected name'], ['u, back', 'undo'], ['?', 'this list']
];
const FOOT = 44;  // px below the graphs
const pen = element('canvas').getContext('2d');
pen.font = FONT;
const tool = (text, title, action) => button(text, title, (event) => {
  event.stopPropagation();  // a click outside of the help closes it
  action();
});
const searchField = makeSearchField((search) => go({search}), {class: 'search'});
const paletteField = element(
    'select', {class: 'palette', 'aria-label': 'colours', onchange: () => go({palette: paletteField.value})});
const PALETTES = {
  safe: 'kind of code', warm: 'kind of code, warm', module: 'module', wait: 'waits', change: setup.per === undefined ? 'change of share' : `change per ${setup.per}`
};
palettes.forEach((name) => paletteField.append(element('option', {value: name}, PALETTES[name])));
const legendText = element('p', {class: 'legend'});
const matchText = element('div', {class: 'found', role: 'status', 'aria-live': 'polite'});
const fillHead = () => picture.headBox.append(legendText, element('p', {class: 'tools'},
    searchField, tool('Reset', 'everything as at first (0)', () => reset()),
    tool('Focus', 'only what the selected function calls (f)', () => act.f()),
    tool('Hide', 'without the selected function (h)', () => act.h()),
    tool('Recursion', 'recursive calls as one frame (r)', () => act.r()),
    tool('Module', 'functions of the selected module that call each other as one frame (m)', () => act.m()),
    tool('Callers', 'callers and callees of the selected function (c)', () => act.c()),
    tool('Bottom-up', 'from each function to its callers (b)', () => act.b()), tool('Flip', 'callers above or below (i)', () => act.i()), paletteField,
    tool('?', 'keys (?)', () => act['?']())), matchText);

const panes = [...svg.querySelectorAll('g.pane')].map((group, index) => {
  const frames = group.querySelector('g.frames'), rects = [...frames.children], base = readTree(rects, names);
  const isMarked = new Set();
  rects.forEach((rect, i) => {
    if (rect.getAttribute('class').split(' ').includes('marked')) isMarked.add(base.name[i]);
    rect.textContent = '';  // removes its <title>: the tool tip has more
  });
  const labels = group.querySelector('g.labels');
  labels.textContent = '';
  const gaps = group.querySelector('g.gaps'), cursor = svgElement('rect', {class: 'cursor', height: BOX});
  const heading = group.querySelector('text.heading') || svgElement('text', {class: 'heading', x: GAP, y: -7});
  group.append(cursor, heading);
  const {kind, events, unit, before, after, leftOut} = {...setup, leftOut: 0, ...group.dataset};
  return {
    number: index, kind, events, unit, before: Number(before), after: Number(after), leftOut: Number(leftOut), group, frames,
    rects, base, stacks: base, tree: base, top: 0, gaps, labels, texts: [], cursor, isMarked, heading, words: heading.textContent,
    selected: 0, layout: null, isOfCallers: false
  };
});
// Of each graph one beside it, for the callers of a function.
const all = [...panes, ...panes.map((pane) => {
  const [frames, labels, gaps] = ['frames', 'labels', 'gaps'].map((name) => svgElement('g', {class: name}));
  const cursor = svgElement('rect', {class: 'cursor', height: BOX}), heading = svgElement('text', {class: 'heading', x: GAP, y: -7});
  const group = svgElement('g', {class: 'pane'}, frames, labels, gaps, cursor, heading);
  pane.group.after(group);
  pane.callers = {...pane, number: panes.length + pane.number, group, frames, rects: [], gaps, labels, texts: [], cursor, heading, isOfCallers: true};
  return pane.callers;
})];
// Of the frames that are too thin to be drawn: 'awaited', 'read' (or there are none), or why they cannot be read.
let thin = document.querySelector('script.data') === null ? 'read' : 'awaited';
let current = 0, hasCursor = false;

const picture = makePicture(svg, KEYS);

const say = (pane, i) => {
  picture.footBox.textContent = facts(pane, i).join(' \u00b7 ');
  picture.placeAround();
};
const showTip = (event) => {
  const rect = event.target;
  picture.showTip(event, rect.frame === undefined ? null : rect.tip || facts(all[rect.pane], rect.frame));
};

const select = (pane, i) => {
  const before = all[current];
  current = pane.number;
  pane.selected = i;
  hasCursor = true;
  placeCursor(before);
  placeCursor(pane);
  say(pane, i);
  if (!isDrawn(pane, i)) return;
  // Scrolls to the frame.
  const box = pane.cursor.getBoundingClientRect(), below = view.innerHeight - 50;
  if (box.top < picture.headBox.getBoundingClientRect().bottom || box.bottom > below) view.scrollBy(0, box.top - view.innerHeight / 2);
};
// Zooms in, or goes on to another function's callers and callees.
const enter = (pane, i) => {
  if (state.around !== '') return go({around: pane.tree.frame(i).text});
  const zoom = [...state.zoom];
  zoom[pane.number] = pane.tree.placeOf(i);
  go({zoom});
};
const reset = () => {
  searchField.value = '';
  hasCursor = false;
  picture.footBox.textContent = '';
  go({...initial(), inverted: state.inverted, palette: state.palette});
};
const toMatch = (step) => {
  const pane = all[current], found = matchAfter(pane.layout, pane.selected, step, (i) => isMatch(pane, i));
  if (found >= 0) select(pane, found);
};
// `sign`: 1 up, -1 down. From the root of a graph to that of the other one.
const moveUp = (sign) => {
  const pane = all[current];
  move(isDown(pane) === sign > 0 ? 'caller' : 'callee');
};
const move = (way) => {
  const pane = all[current], {tree, layout, selected} = pane;
  if (!isDrawn(pane, selected) || !hasCursor) return select(pane, pane.top);
  const next = frameAt(tree, layout, selected, way);
  if (next >= 0)
    select(pane, next);
  else if (way === 'caller' && state.around !== '')
    select(all[(current + panes.length) % all.length], 0);
};

const selectedName = () => all[current].tree.frame(all[current].selected);
const isRoot = () => all[current].selected === 0 && state.around === '';
const nothingZoomed = () => ({zoom: initial().zoom});
const act = {
  f: () => { if (!isRoot()) go({...nothingZoomed(), around: '', focus: selectedName().text}); },
  c: () => { if (!isRoot()) go({...nothingZoomed(), around: selectedName().text}); },
  b: () => go({...nothingZoomed(), around: '', graph: state.graph === 'callers' ? 'callees' : 'callers'}),
  h: () => {
    if (isRoot()) return;
    const {text} = selectedName();
    go({...nothingZoomed(), hide: [...new Set([...state.hide, text])], around: state.around === text ? '' : state.around});
  },
  r: () => go({...nothingZoomed(), recursion: !state.recursion}),
  m: () => {
    const {module} = selectedName();
    if (module === '') return;
    const others = state.modules.filter((name) => name !== module);
    go({...nothingZoomed(), modules: others.length < state.modules.length ? others : [...others, module]});
  },
  i: () => go({inverted: !state.inverted}),
  p: () => go({palette: palettes[(palettes.indexOf(state.palette) + 1) % palettes.length]}),
  y: () => {
    if (isRoot()) return;
    const name = element('code', {}, selectedName().text), said = element('span');
    picture.footBox.replaceChildren(name, ' ', said);
    copyText(name, (words) => { said.textContent = words; });
    picture.placeAround();
  },
  u: () => history.back(),
  n: () => toMatch(1),
  N: () => toMatch(-1),
  0: () => reset(),
  '/': () => searchField.focus(),
  '?': picture.toggleHelp,
  ArrowUp: () => moveUp(1),
  ArrowDown: () => moveUp(-1),
  ArrowLeft: () => move('left'),
  ArrowRight: () => move('right'),
  Enter: (event) => {
    if (event.target.localName === 'button') return false;
    enter(all[current], all[current].selected);
  },
  Escape: () => {
    if (!picture.helpBox.hidden) return picture.toggleHelp();
    if (state.search !== '') {
      searchField.value = '';
      return go({search: ''});
    }
    const {tree, top} = all[current];
    if (state.around !== '')
      go({around: ''});
    else if (top !== 0)
      enter(all[current], tree.parent(top));
  }
};

onKeys(document, act);
// Matches are shown while typing. Enter, or leaving the field, adds the search to the history.
searchField.addEventListener('input', () => {
  state.search = searchField.value;
  show();
});
svg.addEventListener('click', (event) => {
  const rect = event.target;
  picture.hideTip();  // another frame will be at the pointer
  if (!picture.helpBox.hidden && !picture.helpBox.contains(rect)) picture.toggleHelp();
  if (rect.frame === undefined) return;
  const pane = all[rect.pane], isNew = pane.selected !== rect.frame || pane.number !== current || !hasCursor;
  select(pane, rect.frame);
  if (event.pointerType === 'touch' && isNew) return showTip(event);  // the second tap zooms
  event.altKey ? act.h() : enter(pane, rect.frame);
});
svg.addEventListener('pointermove', showTip);
svg.addEventListener('pointerleave', showTip);
view.addEventListener('resize', () => draw());
view.addEventListener('hashchange', () => apply());
// Firefox has the heights of texts only after load.
view.addEventListener('load', () => {
  draw();
  showRoot();
});

fillHead();
picture.start('arrow keys walk through the frames', () => draw());
apply();
if (thin === 'awaited') {
  const mark = (name) => panes.forEach((pane) => pane.isMarked.add(name));
  readThin(panes.map((pane) => pane.base), names, mark)
      .then(() => { thin = 'read'; }, (fault) => { thin = fault.message; }).then(() => apply(true));
}
