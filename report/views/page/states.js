// The states of threads: on the CPU, runnable, or what they waited for, one interval after another.
//
// An interval has a number. Those of a thread follow each other without gaps, from when it began or the recording began.
import {firstFrom} from './search_times.js';

const FIRST_WAKER = 3;
const WAKERS = ['', 'an interrupt', 'a timer'];
// Numbers of states, as in wall_times.h.
export const RUNNABLE = 1;
export const NO_REASON = 11;
export const NOT_RECORDED = 13;

// Null: the page has none. `threads`: of the model.
export const readStates = (names, columns) => {
  if (!names || !columns.has('state.thread')) return null;
  const lanes = columns.get('state.thread'), starts = columns.get('state.start'), counts = columns.get('state.count');
  const length = columns.get('state.length'), state = columns.get('state.state'), sample = columns.get('state.sample'),
        waker = columns.get('state.waker'), sums = columns.get('state.sums');
  const count = length.length, begin = new Float64Array(count), end = new Float64Array(count), thread = new Uint32Array(count);
  const parts = new Map();  // by thread: [[first, end]], of each of its lives; threads of one number follow each other
  const totals = new Map();
  let at = 0;
  lanes.forEach((one, lane) => {
    let time = starts[lane];
    if (!parts.has(one)) {
      parts.set(one, []);
      totals.set(one, new Float64Array(names.length));
    }
    parts.get(one).push([at, at + counts[lane]]);
    names.forEach((_, i) => { totals.get(one)[i] += sums[lane * names.length + i]; });
    for (const behind = at + counts[lane]; at < behind; at++) {
      thread[at] = one;
      begin[at] = time;
      time += length[at];
      end[at] = time;
    }
  });
  // The first interval of a part that ends after a time.
  const firstAfter = ([first, behind], time) => first + firstFrom(end.subarray(first, behind), time + 0.5);
  // Calls visit(i, from, to) with the intervals of a thread in a time, and the part of them that is in it.
  const each = (one, from, to, visit) => {
    for (const part of parts.get(one) || [])
      for (let i = firstAfter(part, from); i < part[1] && begin[i] < to; i++)
        visit(i, Math.max(begin[i], from), Math.min(end[i], to));
  };
  return {
    names,
    threads: [...parts.keys()],
    begin,
    end,
    state,
    thread,
    each,
    // ns in each state, of all of a thread's time.
    totals: (one) => totals.get(one),
    // The same of a part of its time.
    sums: (one, from, to) => {
      const found = new Float64Array(names.length);
      each(one, from, to, (i, first, last) => { found[state[i]] += last - first; });
      return found;
    },
    // The interval of a thread at a time; -1: it was not there.
    at: (one, time) => {
      let found = -1;
      each(one, time, time + 1, (i) => { found = found < 0 ? i : found; });
      return found;
    },
    // The sample that has the stack of a wait; -1: none.
    sample: (i) => sample[i] - 1,
    // The interval with the stack of a sample; -1: none.
    ofSample: (number) => sample.indexOf(number + 1),
    // What ended a wait: {thread, words, time}; thread -1: no thread. Null: not known.
    waker: (i) => (waker[i] === 0 ? null : {
      thread: waker[i] - FIRST_WAKER < 0 ? -1 : waker[i] - FIRST_WAKER,
      words: WAKERS[waker[i]] || '',
      time: state[i] === RUNNABLE ? begin[i] : end[i]
    })
  };
};
