// The answer of tacho why: where the time went. Each finding selects its samples, whose weights are then its
// time.
import {button, element} from '../../browser/dom.js';
import {collapsed} from '../../browser/labels.js';
import {amount, counted, grouped} from '../../browser/words.js';

import {waitAt} from './lanes.js';
import {cleared} from './state.js';

const listOf = (name, lines) => element('ul', {class: name}, ...lines.map((line) => element('li', {}, line)));

// Names of templates lose their arguments where a line would be long; its tooltip has them.
const LONG = 200;
const evidenceLine = (line) => {
  const shown = line.length > LONG ? collapsed(line) : line;
  return element('p', {title: shown !== line && line}, shown);
};

export const makeAnswer = (app) => {
  const {model} = app, {answer} = model, buttons = [];
  const status = element('p', {class: 'status', role: 'status', 'aria-live': 'polite'});
  const show = button('Show', 'go to its timeline and stacks', () => {
    document.querySelector('.timeline').scrollIntoView();
    document.querySelector('.strip').focus({preventScroll: true});
  });

  // With states of threads, the longest wait of the finding is chosen too. Weights do not say which that is: a sample may
  // stand for several waits.
  const longestWait = ({sample, queued}) => {
    const {states} = model, lengthOf = (i) => (i < 0 ? -1 : states.end[i] - states.begin[i]);
    const i = states === null ? -1 : Array.from(sample, (one) => states.ofSample(one, queued))
        .reduce((longest, one) => (lengthOf(one) > lengthOf(longest) ? one : longest), -1);
    return i < 0 ? '' : waitAt(model, states.thread[i], states.begin[i]);
  };
  const choose = (part) => {
    const {number} = part;
    if (app.state.finding === number) return app.go({finding: null, wait: ''});
    app.go({
      ...cleared(),
      finding: number,
      by: 'weight',
      rows: model.states ? 'state' : 'thread',
      wait: longestWait(part),
      field: null,
      search: '',
      zoom: model.tree.root,
      viewFrom: 0,
      viewTo: model.span
    });
  };
  // A part without a sample of its own cannot be selected.
  const titleOf = (part, ...words) => {
    if (part.sample.length === 0) return element('span', {class: 'title'}, ...words);
    const made = button(words, 'select its samples', () => choose(part), {class: 'title'});
    buttons.push([made, part]);
    return made;
  };
  const most = answer.parts.reduce((sum, one) => Math.max(sum, one.time_ns), 1);
  // ns of a finding that are in no sample.
  const unseenOf = (part) => {
    const unseen = part.time_ns - part.time.reduce((sum, one) => sum + one, 0);
    return unseen > 0.001 * part.time_ns ? unseen : 0;
  };
  // Why there are fewer samples than waits.
  const recorded = (part) => {
    const count = part.sample.reduce((sum, i) => sum + !model.events[model.samples.event[i]].isOfCpu, 0);
    if (count === 0 || count >= part.waits || part.evidence.length === 0) return [];
    const words = `${grouped(count)} of the ${counted(part.waits, 'wait')} ${count === 1 ? 'has a sample' : 'have samples'} in this page`;
    return [element('p', {class: 'rest'}, words + (unseenOf(part) > 0 ? '' : '; a rate limit only counted the others'))];
  };
  const finding = (one) => {
    const meter = element('span', {class: 'meter', 'aria-hidden': 'true', hidden: answer.operations});
    meter.style.width = `${100 * one.time_ns / most}%`;
    return element(
        'li', {class: 'finding'}, titleOf(one, ...(one.share ? [element('strong', {}, one.share), ' '] : []), one.title), meter,
        ...one.evidence.map(evidenceLine), ...recorded(one),
        ...(one.sample.length === 0 ? [element('p', {class: 'rest'}, 'It is in no sample of this page.')] :
                                      []),
        ...(one.command ? [element('p', {}, element('code', {}, one.command))] : []));
  };

  const parts = answer.head.map((line) => element('p', {}, line));
  if (answer.missing.length > 0)
    parts.push(listOf('notes', answer.missing.map((line) => `not seen: ${line}`)));
  if (answer.operations && answer.findings.length > 0)
    parts.push(element('h3', {}, 'What a slow one has more of'));
  parts.push(element('ol', {class: 'findings'}, ...answer.findings.map(finding)));
  if (answer.rest !== '') parts.push(element('p', {}, answer.rest));
  if (answer.idle.length > 0)
    parts.push(
        element('h3', {}, 'Waits for work or for other threads (not counted above)'), element('ol', {class: 'findings idle'}, ...answer.idle.map(finding)));
  if (answer.findings.length > 0 && !answer.kept)
    parts.push(element('p', {class: 'rest'}, 'tacho why -o FILE keeps the capture for these commands.'));

  const draw = () => {
    for (const [made, part] of buttons)
      made.setAttribute('aria-pressed', String(app.state.finding === part.number));
    const chosen = answer.parts[app.state.finding];
    status.textContent = '';
    show.hidden = chosen === undefined;
    if (show.hidden) return;
    const unseen = unseenOf(chosen), seen = chosen.time.reduce((sum, one) => sum + one, 0);
    status.textContent = `Selected: ${counted(chosen.sample.length, 'sample')}, ${amount(seen, 'ns')}` +
        (unseen > 0 ? `; ${amount(unseen, 'ns')} more are in no sample of this page` : '');
  };
  return {
    element: element(
        'section', {class: 'answer', 'aria-labelledby': 'answer-title'},
        element('h2', {id: 'answer-title'}, 'Where the time went'), ...parts,
        element('div', {class: 'chosen'}, status, show)),
    draw
  };
};
