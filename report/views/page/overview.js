// What the capture is: where and how it was recorded, its events, what is missing, the processes and
// containers.
import {button, element} from '../../browser/dom.js';
import {amount, counted, grouped, share} from '../../browser/words.js';

import {ofEvent} from './state.js';

const MOST = 8, MOST_EVENTS = 200, MOST_FIELDS = 20;

const factsOf = (model, capture) => {
  const text = (number) => (number === undefined ? '' : model.text(number));
  const facts = [
    ['command', text(capture.command)], ['host', text(capture.host)],
    ['system', [text(capture.kernel), text(capture.arch)].filter((word) => word).join(', ')],
    [
      'processor',
      [text(capture.cpu), capture.cpus ? `${capture.cpus} CPUs` : ''].filter((word) => word).join(', ')
    ],
    ['file', text(capture.file)], ['functions compared by name', text(capture.by_name)]
  ];
  if (capture.clock !== undefined) {
    const milliseconds = Number((BigInt(capture.start) + BigInt(capture.clock)) / 1000000n);
    if (Math.abs(milliseconds) < 8e15)
      facts.push(
          ['recorded', new Date(milliseconds).toISOString().replace('T', ' ').replace(/\..*/, ' UTC')]);
  }
  return facts.filter(([, value]) => value !== '');
};
const list = (facts) =>
    element('dl', {}, ...facts.flatMap(([key, value]) => [element('dt', {}, key), element('dd', {}, value)]));

// Heaviest first: [key, weight].
const heaviest = (model, event, keyOf) => {
  const sums = new Map(), {samples} = model;
  let all = 0;
  for (let i = 0; i < samples.count; i++) {
    if (samples.event[i] !== event) continue;
    const key = keyOf(i);
    sums.set(key, (sums.get(key) || 0) + samples.weight[i]);
    all += samples.weight[i];
  }
  return {all, rows: [...sums].sort((a, b) => b[1] - a[1]), count: sums.size};
};

export const makeOverview = (app) => {
  const {model} = app, {head, capture, samples, threads} = model;
  const events = element('tbody'), weights = element('div');
  let drawn = -1;

  const missing = () => {
    const lines = [];
    if (capture.lost > 0) lines.push(`${counted(capture.lost, 'sample')} lost while recording.`);
    if (capture.left_out > 0)
      lines.push(`${counted(capture.left_out, 'sample')} left out of this page: it holds the first ${
          grouped(samples.count)}.`);
    capture.notes.forEach((note) => lines.push(model.text(note)));
    if (head.hidden.length > 0) lines.push(`Hidden before this page was made: ${head.hidden.join(', ')}.`);
    return lines;
  };
  const lines = missing();
  const notes = lines.length === 0 ?
      'Nothing was lost, and nothing is left out.' :
      element('ul', {class: 'notes'}, ...lines.slice(0, 200).map((line) => element('li', {}, line)));
  const cpus = new Set(samples.cpu).size, stated = [
    ['samples', grouped(samples.count)], ['duration', amount(model.span, 'ns')],
    ['threads', grouped(threads.count)], ['CPUs with samples', grouped(cpus)]
  ];

  // The overview in a line.
  const gist = () => {
    const has = model.events.filter((event) => event.samples > 0).length;
    const words = [
      ...(capture.host === undefined ? [] : [model.text(capture.host)]),
      `${counted(samples.count, 'sample')} of ${counted(has, 'event')} in ${amount(model.span, 'ns')}`,
      `${counted(threads.count, 'thread')}`, counted(cpus, 'CPU')
    ];
    return [...words, lines.length === 0 ? 'nothing lost' : lines[0].replace(/\.$/, '')].join(' · ');
  };

  const tableOf = (title, {all, rows, count}, name, unit) => element(
      'table', {}, element('caption', {}, title),
      element(
          'tbody', {},
          ...rows.slice(0, MOST).map(
              ([key, weight]) => element(
                  'tr', {}, element('td', {class: 'number', title: amount(weight, unit)}, share(weight, all)),
                  element('td', {}, name(key)))),
          ...(count > MOST ?
                  [element('tr', {}, element('td', {}), element('td', {}, `${grouped(count - MOST)} more`))] :
                  [])));
  const processOf = new Map();
  for (let i = 0; i < threads.count; i++)
    if (!processOf.has(threads.pid[i]) || threads.tid[i] === threads.pid[i]) processOf.set(threads.pid[i], i);

  const draw = () => {
    events.replaceChildren(
        ...model.events.filter((event) => event.samples > 0)
            .slice(0, MOST_EVENTS)
            .map(
                (event) => element(
                    'tr', {},
                    element(
                        'td', {class: 'name'},
                        button(
                            event.name, 'show this event', () => app.go(ofEvent(event.number)),
                            {'aria-pressed': String(app.state.event === event.number)})),
                    element('td', {class: 'number'}, grouped(event.samples)), element('td', {}, event.unit),
                    element(
                        'td', {},
                        event.fields.slice(0, MOST_FIELDS).map((field) => field.name).join(', ')))));
    if (drawn === app.state.event) return;
    drawn = app.state.event;
    const {unit} = model.events[drawn];
    weights.replaceChildren(tableOf(
        'Processes', heaviest(model, drawn, (i) => threads.pid[samples.thread[i]]),
        (pid) => `${threads.comm(processOf.get(pid))} ${pid}`, unit));
    if (samples.cgroup)
      weights.append(tableOf(
          'Containers', heaviest(model, drawn, (i) => samples.cgroup[i]), (key) => model.text(key), unit));
  };

  const table = element(
      'table', {}, element('caption', {}, 'Events'),
      element(
          'thead', {},
          element(
              'tr', {},
              ...['event', 'samples', 'weight', 'fields'].map(
                  (name) => element('th', {scope: 'col'}, name)))),
      events);
  const was = model.base ?
      [element('h3', {}, 'Compared with, as it was before'), list(factsOf(model, model.base))] :
      [];
  const details = element(
      'details', {},
      element('summary', {}, element('h2', {}, 'Overview'), element('span', {class: 'gist'}, gist())),
      element(
          'div', {class: 'facts'}, element('div', {}, list(factsOf(model, capture)), list(stated), ...was),
          table, weights),
      element('h3', {}, 'What is missing'), notes);
  return {element: element('section', {class: 'overview'}, details), draw};
};
