// The samples of the selection one by one, with payload and stack. The rows in sight alone are elements.
import {button, element} from '../../browser/dom.js';
import {onKeys} from '../../browser/keys.js';
import {counted, exactAmount, grouped, matching} from '../../browser/words.js';

import {waitAt} from './lanes.js';
import {weightsOf} from './model.js';
import {makePayload} from './payload.js';

const ROW = 24, MOST_HEIGHT = 15000000;  // px: browsers have a limit

export const makeEvents = (app) => {
  const {model} = app, {samples, frames} = model, payload = makePayload(model);
  const list = element('div', {
    class: 'spacer',
    role: 'listbox',
    tabindex: 0,
    'aria-label': 'Samples of the selection. Up and down move, Enter shows one.'
  });
  const box = element('div', {class: 'scroll eventbox'}, list),
        details = element('div', {class: 'details', 'aria-live': 'polite'});
  const status = element('p', {class: 'status'});
  let rows = new Uint32Array(0), chosen = -1;

  // More rows than fit into a browser's longest element are reached by scrolling in larger steps.
  const shownHeight = () => Math.min(rows.length * ROW, MOST_HEIGHT);
  const firstRow = () => {
    const room = shownHeight() - box.clientHeight;
    return room <= 0 ?
        0 :
        Math.round(box.scrollTop / room * Math.max(rows.length - Math.floor(box.clientHeight / ROW), 0));
  };
  const drawRows = () => {
    const first = firstRow(), most = Math.ceil(box.clientHeight / ROW) + 1, top = box.scrollTop, made = [];
    for (let row = first; row < Math.min(first + most, rows.length); row++) {
      const i = rows[row];
      const line = element(
          'div', {
            class: 'event',
            role: 'option',
            id: `event-${row}`,
            'aria-selected': String(row === chosen),
            onclick: () => choose(row)
          },
          element('span', {class: 'when'}, app.when(samples.time[i], 1000)),
          element('span', {class: 'who'}, payload.thread(i)), element('span', {class: 'where'}, payload.cpu(i)),
          element('span', {class: 'what'}, payload.words(i)));
      line.style.top = `${top + (row - first) * ROW}px`;
      made.push(line);
    }
    list.replaceChildren(...made);
    if (chosen >= 0) list.setAttribute('aria-activedescendant', `event-${chosen}`);
  };

  const choose = (row) => {
    chosen = row;
    const i = rows[row], {name, unit} = model.events[samples.event[i]];
    const facts = [
      ['time', `${model.seconds(samples.time[i])} s`], ['event', name], ['thread', payload.thread(i)],
      ['CPU', payload.cpu(i)], ['weight', exactAmount(samples.weight[i], unit)],
      ['in the finding', app.state.finding === null ? '' : exactAmount(weightsOf(model, app.state)[i], 'ns')],
      ...payload.fields(i, exactAmount)
    ].filter(([, value]) => value !== '');
    const wait = model.states === null ? -1 : model.states.ofSample(i);
    const toWait = () => {
      app.go({rows: 'state', wait: waitAt(model, model.states.thread[wait], model.states.begin[wait])});
      document.querySelector('.timeline').scrollIntoView();
    };
    details.replaceChildren(
        element('h3', {}, `Sample ${grouped(row + 1)} of ${grouped(rows.length)}`),
        ...(wait < 0 ? [] : [element('p', {}, button('Show its wait', 'in the states of its thread', toWait))]),
        element(
            'dl', {}, ...facts.flatMap(([key, value]) => [element('dt', {}, key), element('dd', {}, value)])),
        element('ol', {class: 'chain'}, ...payload.chain(i, 500).map((frame) => {
          const module = frames.module(frame);
          return element(
              'li', {}, frames.name(frame),
              element('span', {class: 'module'}, ` ${module} ${frames.line(frame)}`));
        })));
    drawRows();
  };
  const move = (step) => {
    if (rows.length === 0) return;
    const row = Math.min(Math.max(chosen < 0 ? 0 : chosen + step, 0), rows.length - 1), first = firstRow();
    const inSight = Math.floor(box.clientHeight / ROW);
    if (row < first || row >= first + inSight) {
      const room = shownHeight() - box.clientHeight, last = Math.max(rows.length - inSight, 1);
      box.scrollTop = room * Math.min(row < first ? row : row - inSight + 1, last) / last;
    }
    choose(row);
  };
  onKeys(list, {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    PageDown: () => move(10),
    PageUp: () => move(-10),
    Home: () => move(-rows.length),
    End: () => move(rows.length),
    Enter: () => move(0)
  });
  box.addEventListener('scroll', drawRows);

  return {
    element: element('div', {class: 'events'}, status, box, details),
    draw: () => {
      const {indexes} = app.selection;
      rows = app.matches.sample === null ? indexes : indexes.filter(app.matches.sample);
      chosen = -1;
      details.replaceChildren();
      status.textContent =
          app.matches.sample === null ? counted(rows.length, 'sample') : `${matching(rows.length, 'sample')} the search`;
      list.style.height = `${shownHeight()}px`;
      drawRows();
    }
  };
};
