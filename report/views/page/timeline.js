// The timeline: all samples of the event by time, in rows of processors, processes, threads or containers.
// Dragging selects a time, the names at the left select rows. The rows in sight are counted and drawn, no
// others. With the states of threads, rows are lanes (lanes.js).
//
// The strip at the top is the whole capture and frames the view, the time that the rows show. Both have the same left
// edge and width, so that without a zoom a time has the same place in both, and each has an axis of its own times.
import {button, element} from '../../browser/dom.js';
import {onKeys} from '../../browser/keys.js';
import {amount, counted, share} from '../../browser/words.js';

import {AXIS, colour, dragOn, drawAxis, gutter, pen, tipsOn} from './canvas.js';
import {makeLanes} from './lanes.js';
import {drawFrame, makeMarks} from './marks.js';
import {nodesOf, weightsOf} from './model.js';
import {firstFrom} from './search_times.js';
import {ROWS} from './state.js';

const ROW = 22, STRIP = 44, BIN = 2;
const KINDS = {cpu: 'by CPU', process: 'by process', thread: 'by thread', container: 'by container', state: 'states of threads'};

// What a sample's row is: keys[of[i]], a number from 0 up; and what the row is called.
const rowsOf = (model, kind) => {
  const {samples, threads} = model, {thread, cpu, cgroup} = samples;
  const itself = (numbers) => {
    let most = 0;
    for (let i = 0; i < numbers.length; i++)
      if (numbers[i] > most) most = numbers[i];
    return Uint32Array.from({length: most + 1}, (_, i) => i);
  };
  if (kind === 'cpu')
    return {
      of: cpu,
      keys: itself(cpu),
      name: (key) => (key === 0 ? 'CPU not recorded' : `CPU ${key - 1}`),
      list: 'cpus',
      value: (key) => key - 1
    };
  if (kind === 'container' && cgroup)
    return {
      of: cgroup,
      keys: itself(cgroup),
      name: (key) => model.text(key),
      list: 'groups',
      value: (key) => model.text(key)
    };
  if (kind === 'thread' || kind === 'state')
    return {
      of: thread,
      keys: itself(thread),
      name: (key) => `${threads.comm(key)} ${threads.tid[key]}`,
      list: 'tids',
      value: (key) => threads.tid[key]
    };
  // A process is called as its first thread is.
  const leader = new Map(), process = new Uint32Array(threads.count);
  for (let i = 0; i < threads.count; i++)
    if (!leader.has(threads.pid[i]) || threads.tid[i] === threads.pid[i]) leader.set(threads.pid[i], i);
  for (let i = 0; i < threads.count; i++) process[i] = leader.get(threads.pid[i]);
  return {
    of: thread,
    keys: process,
    name: (key) => `${threads.comm(key)} ${threads.pid[key]}`,
    list: 'pids',
    value: (key) => threads.pid[key]
  };
};

export const makeTimeline = (app) => {
  const {model} = app, {samples} = model, {time, node} = samples;
  const strip = element('canvas', {
    tabindex: 0,
    role: 'img',
    class: 'strip',
    'aria-label': 'Timeline of the whole capture. Left and right move the cursor, with Shift they select ' +
        'a time, Enter shows the selected time alone, plus and minus zoom, Escape selects ' +
        'everything.'
  });
  const bars = element(
      'canvas',
      {class: 'bars', role: 'img', tabindex: 0, 'aria-label': 'Samples by time, a row for each name at the left'});
  const labels = element('div', {class: 'labels'});
  const spacer = element('div', {class: 'spacer'}, labels, bars),
        box = element('div', {class: 'scroll rows'}, spacer);
  const axis = element('canvas', {class: 'axis', 'aria-hidden': 'true'});
  const status = element('p', {class: 'status', role: 'status', 'aria-live': 'polite'});
  const kinds = element(
      'select', {'aria-label': 'rows of the timeline', onchange: () => app.go({rows: kinds.value})},
      ...ROWS.filter((kind) => kind === 'container' ? samples.cgroup : kind !== 'state' || model.states)
          .map((kind) => element('option', {value: kind}, KINDS[kind])));
  const clock = element(
      'select', {'aria-label': 'times', onchange: () => app.go({clock: clock.value})},
      element('option', {value: 'start'}, 'times from the start'), element('option', {value: 'recorded'}, 'times as recorded'));
  const lanes = model.states ? makeLanes(app, (sign) => toWait(sign)(lanes.chosen())) : null, isStates = () => app.state.rows === 'state';
  const marks = makeMarks();
  let rows = null, order = [], totals = new Float64Array(0), sum = 0, countedOf = '', overview = null,
      overviewOf = '', mark = null, markOf = '', cursor = null, drag = null, weight = null, shown = null, points = [];

  const ownWeight = (i) => (app.state.by === 'samples' ? 1 : weight[i]);
  const ofWhat = () => `${app.state.event} ${app.state.finding} ${app.state.by}`;
  const view = () => [app.state.viewFrom, Math.max(app.state.viewTo, app.state.viewFrom + 1)];
  const left = () => gutter(box.clientWidth);
  const wide = () => Math.max(box.clientWidth - left(), 50);

  // Heaviest first; processors by their number.
  const count = () => {
    const wanted = `${app.state.rows} ${ofWhat()}`;
    if (wanted === countedOf) return;
    countedOf = wanted;
    rows = rowsOf(model, app.state.rows);
    const {of, keys} = rows, most = keys.reduce((a, b) => Math.max(a, b), 0),
               isThere = new Uint8Array(most + 1);
    totals = new Float64Array(most + 1);
    sum = 0;
    for (let i = 0; i < samples.count; i++) {
      if (weight[i] < 0) continue;
      const key = keys[of[i]], counts = ownWeight(i);
      totals[key] += counts;
      isThere[key] = 1;
      sum += counts;
    }
    order = [];
    for (let key = 0; key <= most; key++)
      if (isThere[key]) order.push(key);
    if (isStates())
      order = lanes.order();
    else if (app.state.rows !== 'cpu')
      order.sort((a, b) => totals[b] - totals[a] || a - b);
  };

  // Sums by bin, of the rows `from` to `to` or of all together. With a selected function, the sums of its samples
  // follow.
  const binned = (from, to, viewFrom, viewTo, bins) => {
    const isAll = from < 0, place = new Int32Array(totals.length).fill(isAll ? 0 : -1), {of, keys} = rows;
    if (!isAll)
      for (let row = from; row < to; row++) place[order[row]] = row - from;
    const sums = new Float64Array(bins * (isAll ? 1 : to - from)),
          parts = mark === null ? null : new Float64Array(sums.length);
    const scale = bins / (viewTo - viewFrom + 1), end = firstFrom(time, viewTo + 1);
    for (let i = firstFrom(time, viewFrom); i < end; i++) {
      if (weight[i] < 0) continue;
      const row = place[keys[of[i]]];
      if (row < 0) continue;
      const bin = row * bins + Math.min(Math.floor((time[i] - viewFrom) * scale), bins - 1),
            counts = ownWeight(i);
      sums[bin] += counts;
      if (parts !== null && mark[node[i]]) parts[bin] += counts;
    }
    return {sums, parts};
  };

  // Bars outside of a selected time are pale.
  const paint = (context, {sums, parts}, row, bins, y, height, most, width, viewFrom, viewTo) => {
    const each = width / bins, chosen = selected(), span = viewTo - viewFrom;
    const isPale = (bin) => chosen !== null &&
        (viewFrom + (bin + 1) / bins * span < chosen[0] || viewFrom + bin / bins * span > chosen[1]);
    for (let bin = 0; bin < bins; bin++) {
      const sum = sums[row * bins + bin];
      if (sum === 0) continue;
      const tall = Math.max(height * sum / most, 1), x = Math.round(bin * each), w = Math.max(Math.round((bin + 1) * each) - x, 1);
      context.fillStyle = colour(parts === null && !isPale(bin) ? 'bar' : 'bar-rest');
      context.fillRect(x, y + height - tall, w, tall);
      if (parts === null || parts[row * bins + bin] === 0) continue;
      const part = Math.max(height * parts[row * bins + bin] / most, 1);
      context.fillStyle = colour('bar');
      context.fillRect(x, y + height - part, w, part);
    }
  };
  const shade = (context, from, to, viewFrom, viewTo, width, height) => {
    const scale = width / (viewTo - viewFrom), start = Math.max((from - viewFrom) * scale, 0);
    const end = Math.min((to - viewFrom) * scale, width);
    if (end < start) return;
    context.fillStyle = colour('selected');
    context.fillRect(start, 0, Math.max(end - start, 1.5), height);
  };
  const selected = () =>
      (drag !== null               ? drag :
           app.state.from === null ? null :
                                     [app.state.from, app.state.to]);

  const drawStrip = () => {
    const width = wide(), bins = Math.ceil(width / BIN), context = pen(strip, width, STRIP + AXIS);
    strip.style.marginLeft = `${left() + box.clientLeft}px`;
    const wanted = `${ofWhat()} ${bins} ${markOf}`;
    if (wanted !== overviewOf) {
      overviewOf = wanted;
      overview = binned(-1, 0, 0, Math.max(model.span, 1), bins);
    }
    const all = overview, most = all.sums.reduce((a, b) => Math.max(a, b), 0) || 1;
    const chosen = selected(), [from, to] = view(), end = Math.max(model.span, 1);
    if (chosen !== null) shade(context, ...chosen, 0, end, width, STRIP);
    paint(context, all, 0, bins, 2, STRIP - 4, most, width, 0, end);
    context.strokeStyle = colour('ink');
    context.lineWidth = 1;
    context.strokeRect(from / end * width + 0.5, 0.5, Math.max((to - from) / end * width - 1, 2), STRIP - 1);
    if (cursor !== null) {
      context.fillStyle = colour('focus');
      context.fillRect(cursor / end * width - 1, 0, 2, STRIP);
    }
    drawAxis(context, 0, end, width, STRIP, app.zero());
  };

  // Wakes, points, the selected time and the chosen interval.
  const drawOnLanes = (context, first, last, top) => {
    const places = new Map();
    for (let row = first; row < last; row++) places.set(order[row], row * ROW - top + ROW / 2);
    const wakes = lanes.paintWakes(context, places, shown), found = lanes.pointsOf(places, weight, shown);
    points = found || [];
    lanes.paintPoints(context, points, shown.width);
    shown.wakes = wakes === null ? -1 : wakes.length;
    shown.points = found === null ? -1 : found.length;
    const scale = shown.width / (shown.to - shown.from), i = lanes.chosen(), picked = selected();
    if (picked !== null)
      drawFrame(context, 'focus', (picked[0] - shown.from) * scale, 1, Math.max((picked[1] - picked[0]) * scale, 2), context.canvas.clientHeight - 2);
    if (i < 0 || !places.has(model.states.thread[i])) return;
    const x = Math.max((model.states.begin[i] - shown.from) * scale, 0), end = Math.min((model.states.end[i] - shown.from) * scale, shown.width);
    if (end >= 0) drawFrame(context, 'ink', x, places.get(model.states.thread[i]) - ROW / 2 + 1, Math.max(end - x, 3), ROW - 2);
  };
  // What the marks in sight mean.
  const drawMarks = () => {
    const said = [], picked = selected() !== null;
    if (isStates()) {
      const ofEvent = app.state.finding === null ? model.events[app.state.event].name : 'the finding';
      if (shown.wakes !== 0) said.push(['wake', shown.wakes < 0 ? 'wakes: too many in sight, zoom in' : 'wake, from the thread that ended the wait']);
      if (shown.points !== 0) said.push(['point', shown.points < 0 ? `samples of ${ofEvent}: too many in sight, zoom in` : `sample of ${ofEvent}`]);
      said.push(['parts', 'several states in a column: parts of its time']);
      if (lanes.chosen() >= 0) said.push(['chosen', 'chosen']);
    }
    if (picked) said.push([isStates() ? 'time' : 'ground', 'selected time']);
    if (mark !== null) said.push(['pale', 'samples without the chosen function']);
    else if (picked) said.push(['pale', 'samples outside of it']);
    marks.draw(said);
  };
  const drawRows = () => {
    const height = Math.max(Math.min(box.clientHeight || 200, order.length * ROW), ROW), top = box.scrollTop,
          width = wide();
    const context = pen(bars, width, height), [viewFrom, viewTo] = view(), bins = Math.ceil(width / BIN);
    bars.style.left = `${left()}px`;
    labels.style.width = `${left()}px`;
    const first = Math.floor(top / ROW), last = Math.min(Math.ceil((top + height) / ROW), order.length);
    const all = isStates() ? null : binned(first, last, viewFrom, viewTo, bins),
          most = (all?.sums.reduce((a, b) => Math.max(a, b), 0)) || 1;
    const chosen = selected();
    shown = {all, first, bins, from: viewFrom, to: viewTo, width};
    if (chosen !== null && !isStates()) shade(context, ...chosen, viewFrom, viewTo, width, height);
    const made = [];
    for (let row = first; row < last; row++) {
      const key = order[row], name = rows.name(key), isOn = app.state[rows.list].includes(rows.value(key));
      if (isStates())
        lanes.paint(context, key, shown, row * ROW - top + 2, ROW - 4);
      else
        paint(context, all, row - first, bins, row * ROW - top + 2, ROW - 4, most, width, viewFrom, viewTo);
      const said = isStates() ? lanes.sumText(model.states.totals(key)) : amount(totals[key], app.unit());
      const label = button(name, `${name}: ${said}`, () => {
        const list = app.state[rows.list], value = rows.value(key);
        app.go({[rows.list]: isOn ? list.filter((one) => one !== value) : [...list, value]});
      }, {class: 'label', 'aria-pressed': String(isOn)});
      label.style.top = `${row * ROW}px`;
      made.push(label);
    }
    if (isStates()) drawOnLanes(context, first, last, top);
    drawMarks();
    axis.style.marginLeft = `${left() + box.clientLeft}px`;
    drawAxis(pen(axis, width, AXIS), viewFrom, viewTo, width, 0, app.zero());
    const had = labels.contains(document.activeElement) ? document.activeElement.title : null;
    labels.replaceChildren(...made);
    if (had !== null) made.find((label) => label.title === had)?.focus({preventScroll: true});
  };

  const describe = () => {
    const {from, to} = app.state, {indexes, all} = app.selection, words = [];
    const [viewFrom, viewTo] = view();
    if (viewFrom > 0 || viewTo < model.span)
      words.push(`rows show ${app.when(viewFrom)} to ${app.when(viewTo)}`);
    if (from !== null)
      words.push(`selected ${app.when(from)} to ${app.when(to)}, ${amount(to - from, 'ns')}`);
    words.push(`${counted(indexes.length, 'sample')} selected, ${share(all, sum)} of ${
        app.state.finding === null ? 'all' : 'the finding'}`);
    status.textContent = words.join(' · ');
  };
  const draw = () => {
    weight = weightsOf(model, app.state);
    count();
    kinds.value = app.state.rows;
    clock.value = app.state.clock;
    if (lanes !== null) {
      lanes.legend.hidden = lanes.about.hidden = !isStates();
      if (isStates()) {
        lanes.drawLegend();
        lanes.describe();
        showChosen();
      }
    }
    if (app.state.focus !== markOf) {
      markOf = app.state.focus;
      mark = markOf === '' ? null : nodesOf(model, markOf);
    }
    spacer.style.height = `${order.length * ROW}px`;
    drawStrip();
    drawRows();
    describe();
  };

  // The row of what was chosen by another step is brought into sight.
  const showChosen = () => {
    const i = lanes.chosen(), isNew = app.state.wait !== lastWait;
    lastWait = app.state.wait;
    if (i < 0 || !isNew) return;
    const y = order.indexOf(model.states.thread[i]) * ROW;
    spacer.style.height = `${order.length * ROW}px`;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW - box.clientHeight;
  };
  let lastWait = '';

  // Pointers and keys.
  const clamp = (at) => Math.min(Math.max(Math.round(at), 0), model.span);
  const dragging = (canvas, timeAt) => dragOn(canvas, {
    moved: (x0, y0, x1) => {
      drag = [timeAt(Math.min(x0, x1)), timeAt(Math.max(x0, x1))];
      drawStrip();
      drawRows();
    },
    ended: () => {
      const [from, to] = drag;
      drag = null;
      app.go({from, to});
    },
    clicked: (x, y) => {
      if (canvas === strip || !isStates()) return app.go({from: null, to: null});
      const row = Math.floor((y + box.scrollTop) / ROW);
      if (row < order.length) lanes.choose(order[row], whenAt(x));
    }
  });
  dragging(strip, (x) => clamp(x / strip.clientWidth * model.span));
  dragging(bars, (x) => clamp(view()[0] + x / wide() * (view()[1] - view()[0])));
  const whenAt = (x) => clamp(view()[0] + x / wide() * (view()[1] - view()[0]));
  // What is at a time: the samples in the bar there.
  const barFacts = ({sums}, row, bins, from, to, x, width) => {
    const bin = Math.min(Math.floor(x / width * bins), bins - 1), each = (to - from) / bins, sum = sums[row * bins + bin];
    return [
      `${app.when(from + bin * each)} to ${app.when(from + (bin + 1) * each)}`,
      app.unit() === 'samples' ? counted(sum, 'sample') : amount(sum, app.unit())
    ];
  };
  const laneFacts = (row, x, y) => {
    const point = points.find(([px, py]) => Math.abs(px - x) < 5 && Math.abs(py - y) < 5);
    if (point) return lanes.pointFacts(point[2]);
    const i = model.states.at(order[row], whenAt(x));
    return i < 0 ? null : lanes.facts(i);
  };
  tipsOn(bars, (x, y) => {
    const row = Math.floor((y + box.scrollTop) / ROW);
    if (row >= order.length || row < shown.first) return null;
    if (isStates()) return laneFacts(row, x, y);
    return [
      rows.name(order[row]), ...barFacts(shown.all, row - shown.first, shown.bins, shown.from, shown.to, x, shown.width),
      `${amount(totals[order[row]], app.unit())} in the whole ${app.state.finding === null ? 'capture' : 'finding'}`
    ];
  });
  tipsOn(strip, (x) => barFacts(overview, 0, overview.sums.length, 0, Math.max(model.span, 1), x, strip.clientWidth));
  const zoomBy = (factor, around) => {
    const [from, to] = view(), middle = around === undefined ? (from + to) / 2 : around;
    const viewFrom = clamp(middle - (middle - from) * factor),
          viewTo = clamp(middle + (to - middle) * factor);
    if (viewTo - viewFrom >= 1000 || factor > 1) app.go({viewFrom, viewTo});
  };
  const onWheel = (turned) => {
    if (!turned.ctrlKey) return;
    turned.preventDefault();
    zoomBy(turned.deltaY > 0 ? 1.5 : 1 / 1.5, view()[0] + turned.offsetX / wide() * (view()[1] - view()[0]));
  };
  bars.addEventListener('wheel', onWheel, {passive: false});
  const toSelection = () => {
    if (app.state.from !== null && app.state.to > app.state.from)
      app.go({viewFrom: app.state.from, viewTo: app.state.to});
  };
  const step = (sign, isSelecting) => {
    const size = model.span / 100, was = cursor === null ? view()[0] : cursor;
    cursor = clamp(was + sign * size);
    if (!isSelecting) {
      status.textContent = `cursor at ${app.when(cursor)}`;
      return drawStrip();
    }
    const {from, to} = app.state;
    const anchor = from === null ? clamp(was) : was === from ? to : from;
    app.go({from: Math.min(anchor, cursor), to: Math.max(anchor, cursor)});
  };
  onKeys(strip, {
    ArrowLeft: (pressed) => step(-1, pressed.shiftKey),
    ArrowRight: (pressed) => step(1, pressed.shiftKey),
    Enter: toSelection,
    '+': () => zoomBy(0.5, cursor ?? undefined),
    '-': () => zoomBy(2, cursor ?? undefined),
    Escape: () => app.go({from: null, to: null})
  });
  // The chosen interval of a lane; without one the first that is in sight.
  const inLane = (does) => () => {
    if (!isStates()) return false;
    if (lanes.chosen() < 0) return lanes.choose(order[Math.floor(box.scrollTop / ROW)], clamp(view()[0]));
    does(lanes.chosen());
  };
  const toRow = (sign) => (i) => {
    const row = order.indexOf(model.states.thread[i]) + sign, middle = (model.states.begin[i] + model.states.end[i]) / 2;
    if (row >= 0 && row < order.length) lanes.choose(order[row], clamp(middle));
  };
  // A wait out of sight is brought into the middle.
  const toWait = (sign) => (i) => {
    const next = lanes.nextWait(i, sign, weight), {begin, end, thread} = model.states;
    if (next < 0) {
      status.textContent = `no ${sign > 0 ? 'later' : 'earlier'} wait of this thread${app.state.finding === null ? '' : ' in the finding'}`;
      return;
    }
    const [from, to] = view(), wide = to - from, isSeen = end[next] > from && begin[next] < to;
    const viewFrom = Math.round(Math.max(Math.min((begin[next] + end[next] - wide) / 2, model.span - wide), 0));
    lanes.choose(thread[next], clamp(begin[next]), isSeen ? {} : {viewFrom, viewTo: viewFrom + wide});
  };
  onKeys(bars, {
    ArrowLeft: inLane(() => lanes.step(-1)),
    ArrowRight: inLane(() => lanes.step(1)),
    ArrowUp: inLane(toRow(-1)),
    ArrowDown: inLane(toRow(1)),
    Enter: inLane((i) => {
      const {begin, end} = model.states, around = Math.max(end[i] - begin[i], 1000);
      app.go({viewFrom: clamp(begin[i] - around), viewTo: clamp(end[i] + around)});
    }),
    '+': () => zoomBy(0.5),
    '-': () => zoomBy(2),
    Escape: () => app.go(app.state.wait === '' ? {from: null, to: null} : {wait: ''})
  });
  box.addEventListener('scroll', drawRows);

  const tools = element(
      'p', {class: 'tools'}, element('h2', {id: 'timeline-title'}, 'Timeline'), kinds, clock,
      button('Zoom to selection', 'the selected time alone (Enter)', toSelection),
      button('+', 'zoom in', () => zoomBy(0.5)), button('−', 'zoom out', () => zoomBy(2)),
      button('Whole time', 'zoom out to everything', () => app.go({viewFrom: 0, viewTo: model.span})));
  return {
    element: element(
        'section', {class: 'timeline', 'aria-labelledby': 'timeline-title'},
        tools, element('div', {class: 'stripbox'}, strip),
        box, axis, ...(lanes === null ? [] : [lanes.legend]), marks.element, ...(lanes === null ? [] : [lanes.about]), status),
    draw,
    // Of the whole page.
    keys: {w: inLane((i) => lanes.toWaker(i)), '.': inLane(toWait(1)), ',': inLane(toWait(-1))},
    zoomBy,
    onWheel,
    // Where times are, in px: of all canvases.
    place: () => ({left: left(), width: wide()})
  };
};
