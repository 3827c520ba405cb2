// planted.mjs CAUSE [SECONDS [TRUTH_FILE]]: causes of planted.cc in JavaScript, with the same truth, of its main thread.
import {spawnSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';

// Where the time of the main thread went until now, in ns. Its CPU time is known up to the last tick, so what is
// measured takes several.
function now() {
  const [cpu, runnable] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ').map(Number);
  return {wall: Number(process.hrtime.bigint()), cpu, runnable};
}

const cause = {wall: 0, cpu: 0, runnable: 0};
function measured(operation) {
  const begin = now();
  operation();
  const end = now();
  for (const kind in cause) cause[kind] += end[kind] - begin[kind];
}

function compute(count) {
  let value = 1;
  for (let i = 0; i < count; ++i) value = (Math.imul(value, 1664525) + 1013904223) | 0;
  return value;
}

function hot_function() {
  let value = 1;
  for (let i = 0; i < 30e6; ++i) value = (Math.imul(value, 1664525) + 1013904223) | 0;
  return value;
}

function spawn_helper() {
  spawnSync('/bin/true');
}

const causes = {
  hot: [{cause: 'cpu', function: 'hot_function'}, 'cpu', hot_function, () => compute(3e6)],
  forks: [{cause: 'fork', function: 'spawn_helper', native: ['uv_spawn']}, 'wall', spawn_helper, () => compute(1e5)],
};

const [name, seconds = 3, truthFile = 1] = process.argv.slice(2);
const [truth, kind, operation, rest] = causes[name];
const begin = now();
while (now().wall < begin.wall + seconds * 1e9) {
  measured(operation);
  rest();
}
const end = now();
const life = {};
for (const each in cause) life[each] = end[each] - begin[each];
truth.share = Math.round(cause[kind] / life.wall * 1e4) / 1e4;
if (truth.cause === 'fork')  // without what the interpreter does on the CPU
  truth.least = Math.round((cause.wall - cause.cpu) / life.wall * 1e4) / 1e4;
Object.assign(truth, {
  cause_ns: cause[kind], wall_ns: life.wall, runnable_ns: life.runnable, idle_ns: 0, pid: process.pid,
  per_thread: {node: {wall_ns: life.wall, cpu_ns: life.cpu, runnable_ns: life.runnable,
                      blocked_ns: life.wall - life.cpu - life.runnable, idle_ns: 0, cause_ns: cause[kind]}},
});
writeFileSync(truthFile, JSON.stringify(truth) + '\n');
