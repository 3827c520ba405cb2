// Lanes: the states of threads in the rows of the timeline, wakes as arrows between them, and the samples of the event as
// points.
import {button, element} from '../../browser/dom.js';
import {collapsed} from '../../browser/labels.js';
import {amount} from '../../browser/words.js';

import {colour} from './canvas.js';
import {drawPoint, drawWake} from './marks.js';
import {makePayload} from './payload.js';
import {firstFrom} from './search_times.js';
import {NO_REASON, NOT_RECORDED, ON_CPU, RUNNABLE} from './states.js';

// An interval of a thread's states, as `wait` of the state.
export const waitAt = (model, thread, time) => `${model.threads.tid[thread]},${model.seconds(time)}`;

const MOST_WAKES = 200, MOST_POINTS = 400;  // in sight
const MOST_FRAMES = 12;

export const makeLanes = (app, toWait) => {
  const {model} = app, {states, threads, samples} = model, payload = makePayload(model);
  const nameOf = (thread) => `${threads.comm(thread)} ${threads.tid[thread]}`;
  const legend = element('p', {class: 'legend'}), about = element('div', {class: 'wait', 'aria-live': 'polite'});

  // States by their time: "on-CPU 1.2 s, blocked: lock 300 ms".
  const sumText = (sums) => {
    const found = [];
    sums.forEach((time, i) => { if (time > 0) found.push([time, states.names[i]]); });
    return found.sort((a, b) => b[0] - a[0]).map(([time, name]) => `${name} ${amount(time, 'ns')}`).join(', ');
  };

  // A column of a px has its states one above the other, as high as their parts of its time; equal columns are one bar.
  const paint = (context, thread, {from, to, width}, y, height) => {
    const count = states.names.length, scale = width / (to - from), bins = Math.ceil(width);
    const times = new Float64Array(bins * count), isThere = new Uint8Array(bins);
    states.each(thread, from, to, (i, begin, end) => {
      const first = (begin - from) * scale, last = (end - from) * scale, state = states.state[i];
      for (let bin = Math.floor(first); bin < Math.min(last, bins); bin++) {
        times[bin * count + state] += Math.min(last, bin + 1) - Math.max(first, bin);
        isThere[bin] = 1;
      }
    });
    const isSame = (a, b) => {
      for (let state = 0; state < count; state++)
        if (Math.abs(times[a * count + state] - times[b * count + state]) > 0.01) return false;
      return isThere[a] === isThere[b];
    };
    for (let bin = 0; bin < bins;) {
      let end = bin + 1;
      while (end < bins && isSame(bin, end)) end++;
      let top = y + height, whole = 0;
      for (let state = 0; state < count; state++) whole += times[bin * count + state];
      for (let state = 0; state < count && whole > 0; state++) {
        const tall = height * times[bin * count + state] / whole;
        if (tall === 0) continue;
        top -= tall;
        context.fillStyle = colour(`state-${state}`);
        context.fillRect(bin, top, end - bin, tall);
      }
      bin = end;
    }
  };

  // The wakes in sight: [from y, to y, x]; null: too many to be told apart.
  const wakesOf = (places, {from, to, width}) => {
    const found = [];
    for (const [thread, y] of places) {
      let isTooMuch = false;
      states.each(thread, from, to, (i) => {
        const waker = states.waker(i);
        if (waker === null || waker.time < from || waker.time > to || !places.has(waker.thread) || waker.thread === thread) return;
        isTooMuch = isTooMuch || found.length >= MOST_WAKES * 2;
        if (!isTooMuch) found.push([places.get(waker.thread), y, Math.round((waker.time - from) / (to - from) * width), i]);
      });
      if (isTooMuch) return null;
    }
    // The end of a wait and the time in the run queue that follows have the same wake.
    const seen = new Set(), once = found.filter(([a, b, x]) => !seen.has(`${a} ${b} ${x}`) && seen.add(`${a} ${b} ${x}`));
    return once.length > MOST_WAKES ? null : once;
  };
  const paintWakes = (context, places, shown) => {
    const wakes = wakesOf(places, shown);
    wakes?.forEach(([start, end, x]) => drawWake(context, x, start, end));
    return wakes;
  };

  // The samples of the event that are in sight, with their payloads if there is room: [x, y, number]; null: too many.
  const pointsOf = (places, weight, {from, to, width}) => {
    const found = [], end = firstFrom(samples.time, to + 1);
    for (let i = firstFrom(samples.time, from); i < end; i++) {
      if (weight[i] < 0 || !places.has(samples.thread[i])) continue;
      if (found.length === MOST_POINTS) return null;
      found.push([(samples.time[i] - from) / (to - from) * width, places.get(samples.thread[i]), i]);
    }
    return found;
  };
  // A wait's event gets no label: the coloured interval shows the same.
  let waits = null;
  const isOfWait = (i) => {
    if (states === null) return false;
    waits ??= new Set(Array.from(states.begin, (_, at) => states.sample(at)));
    return app.state.rows === 'state' && waits.has(i);
  };
  const paintPoints = (context, points, width) => {
    const next = new Map();  // by row: where the point to the right is
    context.textBaseline = 'middle';
    for (const [x, y, i] of points.slice().reverse()) {
      const words = isOfWait(i) ? '' : payload.words(i).slice(0, 60), room = (next.has(y) ? next.get(y) : width) - x - 10;
      drawPoint(context, x, y);
      const wide = context.measureText(words).width;
      if (words !== '' && wide < room) {
        context.fillStyle = colour('paper');
        context.globalAlpha = 0.85;
        context.fillRect(x + 5, y - 7, wide + 4, 14);
        context.globalAlpha = 1;
        context.fillStyle = colour('ink');
        context.fillText(words, x + 7, y);
      }
      next.set(y, x - 4);
    }
  };

  // Where waits are only counted, as beyond a rate limit, one interval stands for all of them.
  const isUnrecorded = (i) => states.state[i] === NO_REASON && states.sample(i) < 0 && states.waker(i) === null;

  // Who had the CPU that a thread waited for; empty: not known. The event of its wait has the last one.
  const MOST_RUNNERS = 4;
  const runnersText = (i) => {
    if (states.state[i] !== RUNNABLE) return '';
    const cpu = states.cpu(i), sample = states.sample(i), known = new Map(sample < 0 ? [] : payload.fields(sample, String));
    const found = cpu < 0 ? [] : [...states.runners(cpu, states.begin[i], states.end[i])].sort((a, b) => b[1] - a[1]);
    const of = (one) => known.get(one) || '', length = states.end[i] - states.begin[i];
    // Where preemption is not recorded, several threads may seem to be on one CPU.
    const isSure = found.reduce((sum, [, time]) => sum + time, 0) <= length;
    const words = found.slice(0, MOST_RUNNERS).map(([thread, time]) => `${nameOf(thread)}${isSure ? ` ${amount(time, 'ns')}` : ''}`);
    const rest = found.slice(0, MOST_RUNNERS).reduce((left, [, time]) => left - time, length);
    if (words.length > 0 && isSure && rest > 0.01 * length) words.push(`unknown or others: ${amount(rest, 'ns')}`);
    if (of('runner') !== '') words.push(`${words.length > 0 ? 'the last ' : ''}${of('runner')} ${of('runner_pid').replace(/^0$/, '')}`.trim());
    return words.length === 0 ? '' : `${cpu < 0 ? 'the CPU' : `CPU ${cpu}`} had ${words.join(', ')}`;
  };

  // An interval in words; its thread first.
  const facts = (i) => {
    const waker = states.waker(i), sample = states.sample(i), length = states.end[i] - states.begin[i];
    const step = Math.max(length / 1000, 1);
    const lines = [
      nameOf(states.thread[i]), `${states.names[states.state[i]]}, ${amount(length, 'ns')}`,
      `${app.when(states.begin[i], step)} to ${app.when(states.end[i], step)}`
    ];
    if (isUnrecorded(i)) lines.push('no event of its own: it may be several waits, also for a CPU');
    if (waker !== null) lines.push(`woken by ${waker.thread < 0 ? waker.words : nameOf(waker.thread)}`);
    const runners = runnersText(i);
    if (runners !== '') lines.push(runners);
    if (sample >= 0) lines.push(...payload.nearest(sample, 4));
    return lines;
  };
  const pointFacts = (i) =>
      [model.events[samples.event[i]].name, app.when(samples.time[i], 1000), ...payload.fields(i).map(([name, value]) => `${name}: ${value}`),
       ...payload.nearest(i, 4)];

  // What is chosen: `wait` of the state is "TID,SECONDS".
  const chosen = () => {
    const form = /^(\d+),([\d.]+)$/.exec(app.state.wait);
    if (!form) return -1;
    const time = model.offsetOf(form[2]);
    if (time === null) return -1;
    return states.threads.filter((one) => threads.tid[one] === Number(form[1]))
        .reduce((found, one) => (found < 0 ? states.at(one, time) : found), -1);
  };
  const choose = (thread, time, changes) => app.go({...changes, wait: waitAt(model, thread, time)});
  // To the thread that ended a wait, at that time: what it did then.
  const toWaker = (i) => {
    const waker = i < 0 ? null : states.waker(i);
    if (waker !== null && waker.thread >= 0) choose(waker.thread, Math.max(waker.time - 1, 0));
  };
  const hasSample = (event, cpu, {from, to}) => {
    for (let i = firstFrom(samples.time, from); i < samples.count && samples.time[i] <= to; i++)
      if (samples.event[i] === event && samples.cpu[i] === cpu + 1) return true;
    return false;
  };
  const describe = () => {
    const i = chosen();
    about.replaceChildren();
    if (i < 0) return;
    const [name, ...rest] = facts(i), waker = states.waker(i), sample = states.sample(i);
    // The event of a wait comes after its end, when the thread runs again.
    const end = Math.max(states.end[i], sample < 0 ? 0 : samples.time[sample]);
    const time = {from: Math.max(Math.round(states.begin[i]), 0), to: Math.min(Math.round(end), model.span)};
    const tools = [button('Select this time', 'the samples of that time', () => app.go(time))];
    const cpu = states.cpu(i), runs = model.events.findIndex((one) => one.isOfCpu && one.samples > 0);
    let meanwhile = '';
    if (waker !== null && waker.thread >= 0) {
      const name = nameOf(waker.thread), sums = states.sums(waker.thread, states.begin[i], states.end[i]), did = sumText(sums);
      // What it did most: on the CPU, or waits.
      const clock = sums[ON_CPU] >= Math.max(...sums) ? runs : -1;
      if (did !== '') meanwhile = `meanwhile ${name}: ${did}`;
      tools.unshift(
          button(`To the waker: ${name}`, 'what it did when it ended the wait (w)', () => toWaker(i)),
          button(`Stacks of ${name} meanwhile`, 'its samples during this wait', () => app.go({
            ...time, finding: null, tids: [threads.tid[waker.thread]],
            event: clock >= 0 ? clock : sample < 0 ? app.state.event : samples.event[sample]
          })));
    }
    if (states.state[i] === RUNNABLE && cpu >= 0 && hasSample(runs, cpu, time))
      tools.push(button(`Stacks of CPU ${cpu} meanwhile`, 'what ran on the CPU that it waited for', () => app.go({...time, finding: null, cpus: [cpu], event: runs})));
    tools.push(
        button('◂', 'the previous wait of this thread; if a finding is chosen, only its waits (,)', () => toWait(-1)),
        button('▸', 'the next wait (.)', () => toWait(1)));
    const chain = sample < 0 ? [] : payload.nearest(sample, MOST_FRAMES), runners = runnersText(i);
    about.append(
        element('p', {}, element('strong', {}, name), ` ${rest.slice(0, waker === null ? 2 : 3).join(' · ')} `, ...tools),
        element('p', {class: 'module', title: chain.join(' ← ')}, chain.map(collapsed).join(' ← ')), element('p', {class: 'module', hidden: meanwhile === ''}, meanwhile),
        element('p', {class: 'module', hidden: runners === ''}, runners));
  };
  // From a chosen interval: to the one before or after it, or to the same time in another thread.
  const step = (sign) => {
    const i = chosen(), next = i + sign;
    if (i >= 0 && next >= 0 && next < states.thread.length && states.thread[next] === states.thread[i])
      choose(states.thread[next], states.begin[next]);
  };
  // The next wait of the thread (sign 1) or the previous one (-1); -1: none. From a run queue: only times in a run queue; else only
  // blocked ones. If a finding is chosen: only waits whose samples have a weight.
  const nextWait = (i, sign, weight) => {
    const {state, thread} = states, isOne = (at) => (state[i] === RUNNABLE ? state[at] === RUNNABLE : state[at] > RUNNABLE && state[at] < NOT_RECORDED) &&
        (app.state.finding === null || weight[states.sample(at)] >= 0);
    for (let at = i + sign; at >= 0 && at < thread.length && thread[at] === thread[i]; at += sign)
      if (isOne(at)) return at;
    return -1;
  };
  const occurring = new Set(states.state);
  const drawLegend = () => legend.replaceChildren(...states.names.flatMap((name, i) => {
    if (!occurring.has(i)) return [];
    const mark = element('span', {class: 'mark'});
    mark.style.background = colour(`state-${i}`);
    return [element('span', {}, mark, name)];
  }));
  // Threads with the most time on the CPU or waiting for one first.
  const order = () => states.threads.slice().sort((a, b) => {
    const busy = (one) => states.totals(one)[ON_CPU] + states.totals(one)[ON_CPU + 1];
    return busy(b) - busy(a) || a - b;
  });
  return {
    legend, about, sumText, paint, paintWakes, pointsOf, paintPoints, facts, pointFacts, chosen, choose, toWaker, describe, step, nextWait,
    drawLegend, order, wakesOf
  };
};
