// The states of threads: on the CPU, runnable, or what they waited for, one interval after another.
//
// An interval has a number. Those of a thread follow each other without gaps, from when it began or the recording began.
import {firstFrom} from './search_times.js';

const FIRST_WAKER = 3;
const WAKERS = ['', 'an interrupt', 'a timer'];
// Numbers of states, as in wall_times.h.
export const ON_CPU = 0;
export const RUNNABLE = 1;
export const NO_REASON = 11;
export const NOT_RECORDED = 13;

// Null: the page has none. `threads`: of the model.
export const readStates = (names, columns) => {
  if (!names || !columns.has('state.thread')) return null;
  const lanes = columns.get('state.thread'), starts = columns.get('state.start'), counts = columns.get('state.count');
  const length = columns.get('state.length'), state = columns.get('state.state'), sample = columns.get('state.sample'),
        waker = columns.get('state.waker'), cpu = columns.get('state.cpu'), sums = columns.get('state.sums');
  const count = length.length, begin = new Float64Array(count), end = new Float64Array(count), thread = new Uint32Array(count);
  const parts = new Map();  // by thread: [[first, end]], of each of its lives; threads of one number follow each other
  const totals = new Map();
  let at = 0, intervals = null;  // by sample: the first with its stack
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
    // The interval with the stack of a sample; -1: none. Of a wait with two parts: the blocked one, or with `isQueued` the
    // one in a run queue. `isQueued` false: the blocked one alone.
    ofSample: (number, isQueued) => {
      if (intervals === null) {
        intervals = new Map();
        for (let i = count - 1; i >= 0; i--) intervals.set(sample[i] - 1, i);
        intervals.delete(-1);
      }
      const i = intervals.get(number) ?? -1;
      const found = i >= 0 && isQueued && sample[i + 1] === sample[i] ? i + 1 : i;
      return found >= 0 && isQueued !== undefined && (state[found] === RUNNABLE) !== isQueued ? -1 : found;
    },
    // Who was on a CPU in a time, as far as that is known: the ns of each thread. A thread is taken to stay
    // on the CPU where its last wait ended.
    runners: (number, from, to) => {
      const found = new Map();
      for (const one of parts.keys())
        each(one, from, to, (i, first, last) => {
          const isThere = state[i] === ON_CPU && i > 0 && thread[i - 1] === one && cpu[i - 1] === number + 1;
          if (isThere) found.set(one, (found.get(one) || 0) + last - first);
        });
      return found;
    },
    // The CPU that the thread of a wait got at its end; -1: not known, or it did not get one.
    cpu: (i) => (thread[i + 1] === thread[i] ? cpu[i] - 1 : -1),
    // What ended a wait: {thread, words, time}; thread -1: no thread. Null: not known.
    waker: (i) => (waker[i] === 0 ? null : {
      thread: waker[i] - FIRST_WAKER < 0 ? -1 : waker[i] - FIRST_WAKER,
      words: WAKERS[waker[i]] || '',
      time: state[i] === RUNNABLE ? begin[i] : end[i]
    })
  };
};
