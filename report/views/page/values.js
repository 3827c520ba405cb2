// The values of a numeric field: a heat map of time and value, in which a box can be selected, and the
// distribution of the selection. Without fields it shows when in its second each sample was taken.
import {button, element} from '../../browser/dom.js';
import {areaFacts, areaOf, boxAt, makeChoice, nearestBox, placeOf} from '../../browser/heat_map.js';
import {onKeys} from '../../browser/keys.js';
import {linearTicks, logTicks} from '../../browser/ticks.js';
import {amount, counted, grouped, share} from '../../browser/words.js';

import {boxFacts} from './box_facts.js';
import {AXIS, colour, dragOn, drawAxis, isDark, pen, tipsOn} from './canvas.js';
import {makeFlame} from './flame.js';
import {select} from './model.js';
import {makePayload} from './payload.js';

const HEIGHT = 260, CELL = 6, MOST_POINTS = 400, MOST_FACTS = 20, PARTS = 2;  // rows for each power of two
const OFFSET = {
  name: '',
  unit: 'ns',
  isText: false
};

// The smallest value that at least this part of all values does not exceed. Reorders them (quickselect).
const percentile = (values, part) => {
  const wanted = Math.max(Math.ceil(values.length * part), 1) - 1;
  let from = 0, to = values.length - 1;
  while (from < to) {
    const pivot = values[(from + to) >> 1];
    let low = from, high = to;
    while (low <= high) {
      while (values[low] < pivot) low++;
      while (values[high] > pivot) high--;
      if (low > high) break;
      const value = values[low];
      values[low++] = values[high];
      values[high--] = value;
    }
    if (wanted <= high)
      to = high;
    else if (wanted >= low)
      from = low;
    else
      break;
  }
  return values[wanted];
};

export const makeValues = (app) => {
  const {model} = app, {samples, ordinal} = model;
  const canvas = element('canvas', {
    tabindex: 0,
    role: 'img',
    class: 'heat',
    'aria-label': 'Heat map of time and value. Arrow keys choose a box, with Shift several, Enter selects ' +
        'its samples; the table below has the distribution.'
  });
  const ruler = element('canvas', {class: 'ruler', 'aria-hidden': 'true'}), title = element('h3'),
        status = element('p', {class: 'status', role: 'status', 'aria-live': 'polite'});
  const choice = element(
      'select',
      {'aria-label': 'field', onchange: () => app.go({field: choice.value, low: null, high: null})});
  const body = element('tbody'), facts = element('p');
  const table = element(
      'table', {class: 'distribution'}, element('caption', {}, 'Distribution in the selection'),
      element(
          'thead', {},
          element(
              'tr', {}, element('th', {scope: 'col'}, 'from'), element('th', {scope: 'col'}, 'to'),
              element('th', {scope: 'col'}, 'samples'), element('th', {scope: 'col'}, 'share'))),
      body);
  const payload = makePayload(model), flame = makeFlame(app), frequent = element('tbody'), said = element('p');
  const beside = element(
      'div', {class: 'beside', hidden: true}, element('h3', {}, 'More frequent in the box'), said,
      element('table', {class: 'frequent'},
          element('thead', {}, element('tr', {}, ...['G2', 'inside', 'outside', 'what'].map((words) => element('th', {scope: 'col'}, words)))),
          frequent),
      button('Its samples', 'the samples of the box one by one (3)', () => app.go({tab: 'events'})), flame.element);
  let map = null;

  const fields = () => [...model.events[app.state.event].fields.filter((field) => !field.isText), OFFSET];
  const field = () => {
    const all = fields(), asked = all.find((one) => one.name === app.state.field);
    return asked || all.find((one) => one.role === 'value') || all.find((one) => one.unit !== '') || OFFSET;
  };
  const reader = (chosen) => {
    if (chosen === OFFSET) return (i) => samples.time[i] % 1e9;
    const {event} = app.state, {missing, values} = chosen;  // a finding has samples of other events too
    return (i) => (samples.event[i] !== event || (missing && missing[ordinal[i]]) ? NaN : values[ordinal[i]]);
  };

  // Rows are parts of powers of two; below 1 one row. Of offsets they are parts of a second.
  const scaleOf = (chosen, least, most) => {
    if (chosen === OFFSET) {
      const rows = Math.floor(HEIGHT / CELL), size = 1e9 / rows;
      return {
        rows,
        of: (value) => Math.min(Math.floor(value / size), rows - 1),
        low: (row) => Math.ceil(row * size),
        high: (row) => Math.ceil((row + 1) * size) - 1,
        place: (value) => value / size,
        ticks: linearTicks(0, 1e9, 8)
      };
    }
    const step = (value) => (value < 1 ? 0 : 1 + Math.floor(Math.log2(value) * PARTS + 1e-9));
    const first = step(least), rows = Math.max(step(most) - first + 1, 1);
    const from = (at) => (at <= 0 ? Math.min(least, 0) : Math.ceil(2 ** ((at - 1) / PARTS) - 1e-6));
    const isWhole =
        chosen.values instanceof Float64Array && Number.isInteger(least) && Number.isInteger(most);
    return {
      rows,
      of: (value) => step(value) - first,
      low: (row) => from(row + first),
      high: (row) =>
          (isWhole ? Math.max(from(row + first + 1) - 1, from(row + first)) : from(row + first + 1)),
      place: (value) => 1 + Math.log2(value) * PARTS - first,
      ticks: logTicks(Math.max(from(first), 1), from(first + rows), chosen.unit === 'bytes')
    };
  };

  const draw = () => {
    const chosen = field(), read = reader(chosen), {state} = app;
    choice.replaceChildren(...fields().map(
        (one) => element('option', {value: one.name}, one === OFFSET ? 'time within its second' : one.name)));
    choice.value = chosen.name;
    title.textContent =
        chosen === OFFSET ? 'When in its second each sample was taken' : `${chosen.name} by time`;
    // A box does not hide what is around it.
    const around = state.low === null ?
        app.selection.indexes :
        select(model, {...state, low: null, high: null, from: null, to: null}).indexes;
    let least = Infinity, most = -Infinity;
    for (const i of around) {
      const value = read(i);
      if (value < least) least = value;
      if (value > most) most = value;
    }
    const scale = least <= most ? scaleOf(chosen, least, most) : null;
    drawMap(chosen, read, around, scale);
    if (map !== null) title.textContent += map.points.length > 0 ? ': each point is a sample' : `: ${isDark() ? 'brighter' : 'darker'} is more samples`;
    drawTable(chosen, read, scale);
    drawBox(chosen, around);
  };

  const drawMap = (chosen, read, around, scale) => {
    const {left, width} = app.timeline.place(), context = pen(canvas, width, HEIGHT + AXIS);
    context.fillStyle = colour('muted');
    map = null;
    if (scale === null) return context.fillText('No sample of the selection has this field.', 8, 20);
    const {viewFrom} = app.state, span = Math.max(app.state.viewTo - viewFrom, 1);
    const columns = Math.max(
        chosen === OFFSET ? Math.min(Math.floor(width / CELL), Math.ceil(span / 1e9)) :
                            Math.floor(width / CELL),
        1);
    const counts = new Uint32Array(columns * scale.rows), inSight = [];
    let top = 0;
    for (const i of around) {
      const value = read(i), at = samples.time[i] - viewFrom;
      if (Number.isNaN(value) || at < 0 || at > span) continue;
      const place = scale.of(value) * columns + Math.min(Math.floor(at / span * columns), columns - 1);
      if (++counts[place] > top) top = counts[place];
      if (inSight.length <= MOST_POINTS) inSight.push(i);
    }
    map = {
      columns,
      rows: scale.rows,
      count: (column, row) => counts[row * columns + column],
      wide: width / columns,
      tall: HEIGHT / scale.rows,
      scale,
      counts,
      chosen,
      viewFrom,
      span,
      total: around.length,
      points: inSight.length > MOST_POINTS ? [] : inSight.map((i) => [
        (samples.time[i] - viewFrom) / span * width, HEIGHT - Math.max(scale.place(read(i)), 0) * HEIGHT / scale.rows, i
      ])
    };
    canvas.cells = map;
    if (map.points.length > 0)
      drawPoints(context);
    else
      drawCells(context, top);
    drawScale(left, chosen, scale);
    drawAxis(context, viewFrom, viewFrom + span, width, HEIGHT, app.zero());
    const {low, high, from, to} = app.state, area = boxes.area();
    context.strokeStyle = colour('focus');
    context.lineWidth = 2;
    if (area !== null) {
      const {x, y, width, height} = placeOf(map, area);
      context.strokeRect(x, y, width, height);
    } else if (low !== null) {
      const x0 = from === null ? 0 : (from - viewFrom) / span * width,
            x1 = to === null ? width : (to - viewFrom) / span * width;
      const rowOf = (value) => Math.min(Math.max(scale.of(value), 0), scale.rows - 1);
      context.strokeRect(
          x0 + 1, HEIGHT - (rowOf(high) + 1) * map.tall + 1, Math.max(x1 - x0 - 2, 3),
          (rowOf(high) - rowOf(low) + 1) * map.tall - 2);
    }
  };

  const heats = model.head.heats || [['#0b1f5c', '#ffffd9']];
  const heatOf = (part) => heats[Math.round(part * (heats.length - 1))][isDark() ? 1 : 0];
  const drawCells = (context, top) => {
    for (let row = 0; row < map.rows; row++) {
      for (let column = 0; column < map.columns; column++) {
        const number = map.count(column, row);
        if (number === 0) continue;
        context.fillStyle = heatOf(top > 1 ? Math.log(number) / Math.log(top) : 1);
        context.fillRect(
            column * map.wide, HEIGHT - (row + 1) * map.tall, Math.max(map.wide - 0.4, 0.8), Math.max(map.tall - 0.4, 0.8));
      }
    }
  };
  // Few samples in sight are single values.
  const drawPoints = (context) => {
    context.fillStyle = heatOf(0.5);
    for (const [x, y] of map.points) {
      context.beginPath();
      context.arc(x, y, 3, 0, 7);
      context.fill();
    }
  };
  const pointFacts = (i) => [
    payload.thread(i), app.when(samples.time[i], 1000), ...payload.fields(i).map(([name, value]) => `${name}: ${value}`),
    ...payload.nearest(i, 4)
  ];

  // What is more frequent in the box, beside its flame graph.
  const drawBox = (chosen, around) => {
    const inside = app.selection.indexes;
    beside.hidden = app.state.low === null;
    if (beside.hidden) return;
    const found = boxFacts(model, inside, around, chosen), others = around.length - inside.length;
    said.textContent = `${counted(inside.length, 'sample')} in the box, ${grouped(others)} outside` +
        (found.length === 0 ? '; nothing is significantly more frequent in the box' : '');
    frequent.replaceChildren(...found.slice(0, MOST_FACTS).map((one) => element(
        'tr', {}, element('td', {class: 'number'}, one.g2.toFixed(1)), element('td', {class: 'number'}, share(one.inside, inside.length)),
        element('td', {class: 'number'}, share(one.outside, others)), element('td', {class: 'name'}, factText(one)))));
    flame.draw();
  };
  const factText = ({kind, name, value, others}) => {
    if (kind === 'thread') return `thread ${name} (${value})`;
    if (kind !== 'function') return `${name} ${value}`;
    return `function ${name}${value === '' ? '' : ` (${value})`}${others > 0 ? ` and ${others} with the same counts` : ''}`;
  };

  // Round numbers in the gutter, as many as have room.
  const drawScale = (left, chosen, scale) => {
    const context = pen(ruler, left, HEIGHT + AXIS), tall = HEIGHT / scale.rows, taken = [];
    context.fillStyle = colour('muted');
    context.textAlign = 'right';
    for (const value of scale.ticks) {
      const y = HEIGHT - scale.place(value) * tall;
      if (taken.some((other) => Math.abs(other - y) < 14)) continue;
      taken.push(y);
      context.fillText(amount(value, chosen.unit), left - 7, Math.min(Math.max(y, 8), HEIGHT - 8));
      context.fillRect(left - 4, Math.min(y, HEIGHT - 1), 4, 1);
    }
  };

  const drawTable = (chosen, read, scale) => {
    const {indexes} = app.selection;
    const counts = new Uint32Array(scale === null ? 0 : scale.rows), values = new Float64Array(indexes.length);
    let number = 0, sum = 0, least = Infinity, most = -Infinity;
    for (let at = 0; at < indexes.length; at++) {
      const value = read(indexes[at]);
      if (Number.isNaN(value)) continue;
      values[number++] = value;
      sum += value;
      if (value < least) least = value;
      if (value > most) most = value;
      counts[scale.of(value)]++;
    }
    const {unit} = chosen, shown = (value) => amount(value, unit),
          longest = counts.reduce((a, b) => Math.max(a, b), 1);
    const rows = [];
    for (let row = 0; row < counts.length; row++)
      if (counts[row] > 0) rows.push(row);
    facts.textContent = '';
    if (number > 0) {
      const all = values.subarray(0, number);
      facts.textContent = `${counted(number, 'value')}: mean ${shown(sum / number)}, least ${shown(least)}, median ${
                              shown(percentile(all, 0.5))}, ` +
          `99 % up to ${shown(percentile(all, 0.99))}, largest ${shown(most)}`;
    }
    body.replaceChildren(...rows.map((row) => {
      const bar = element('span', {class: 'meter'});
      bar.style.width = `${100 * counts[row] / longest}%`;
      return element(
          'tr', {},
          element(
              'td', {class: 'number'},
              button(
                  shown(scale.low(row)), 'select these values',
                  () => app.go({field: chosen.name, low: scale.low(row), high: scale.high(row)}))),
          element('td', {class: 'number'}, shown(scale.high(row))),
          element('td', {class: 'number'}, grouped(counts[row])),
          element('td', {class: 'meterbox'}, share(counts[row], number), bar));
    }));
  };

  // What boxes select.
  const selectionOf = ({first, last, low, high}) => {
    const {columns, scale, viewFrom, span} = map, when = (column) => viewFrom + column / columns * span;
    return {
      field: map.chosen.name,
      from: Math.ceil(when(first)),
      to: last === columns - 1 ? viewFrom + span : Math.ceil(when(last + 1)) - 1,
      low: scale.low(low),
      high: scale.high(high)
    };
  };
  const textOf = (area) => {
    const {from, to, low, high} = selectionOf(area), {unit} = map.chosen;
    return areaFacts(map, area, {
      total: map.total,
      times: `${app.when(from)} to ${app.when(to)}`,
      values: `${amount(low, unit)} to ${amount(high, unit)}`
    });
  };
  const boxes = makeChoice(() => map, () => {
    status.textContent = boxes.area() === null ? '' : textOf(boxes.area()).join(' · ');
    draw();
  });
  const selectChosen = () => {
    if (boxes.area() !== null) app.go(selectionOf(boxes.area()));
  };
  dragOn(canvas, {
    moved: (x0, y0, x1, y1) => {
      if (map !== null) boxes.choose(nearestBox(map, x0, y0), nearestBox(map, x1, y1));
    },
    ended: () => {
      selectChosen();
      boxes.clear();
    },
    clicked: () => {
      boxes.clear();
      if (app.state.low !== null) app.go({low: null, high: null, from: null, to: null});
    }
  });
  tipsOn(canvas, (left, top) => {
    const point = map?.points.find(([x, y]) => Math.abs(x - left) < 5 && Math.abs(y - top) < 5);
    if (point) return pointFacts(point[2]);
    const box = map === null ? null : boxAt(map, left, top);
    return box !== null && map.count(...box) > 0 ? textOf(areaOf(box, box)) : null;
  });
  canvas.addEventListener('wheel', (turned) => app.timeline.onWheel(turned), {passive: false});
  onKeys(canvas, {
    ...boxes.keys,
    Enter: selectChosen,
    '+': () => app.timeline.zoomBy(0.5),
    '-': () => app.timeline.zoomBy(2),
    Escape: () => {
      boxes.clear();
      app.go({low: null, high: null});
    }
  });

  return {
    element: element(
        'div', {class: 'values'}, element('p', {class: 'tools'}, element('label', {}, 'Field ', choice)),
        title, element('div', {class: 'heatbox'}, ruler, canvas), status, facts,
        element('div', {class: 'valuesbelow'}, element('div', {class: 'scroll'}, table), beside)),
    keys: flame.keys,
    draw
  };
};
