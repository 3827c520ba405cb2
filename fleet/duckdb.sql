-- The tables of many captures in DuckDB, and the questions to them (docs/fleet.md). tacho fleet runs the
-- sections below by their names: $name is a bound value ('' is any), and @name@ is another section or the
-- quoted path of a table's file. By hand: the section "schema", then "load" with the paths of the files of
-- `tacho export --to tables DIR`.

-- section: schema
CREATE TABLE IF NOT EXISTS captures (
  capture_id UUID PRIMARY KEY, file VARCHAR, host VARCHAR, service VARCHAR, release VARCHAR,
  host_class VARCHAR, kernel VARCHAR, arch VARCHAR, cpus INTEGER, start_ns BIGINT, end_ns BIGINT,
  clock VARCHAR, command VARCHAR, recorder VARCHAR, samples UBIGINT, lost UBIGINT);
CREATE TABLE IF NOT EXISTS samples (
  capture_id UUID, host VARCHAR, service VARCHAR, event VARCHAR, ts_ns BIGINT, cpu INTEGER, pid INTEGER,
  tid INTEGER, comm VARCHAR, cgroup VARCHAR, stack_id UUID, value UBIGINT, unit VARCHAR);
CREATE TABLE IF NOT EXISTS samples_1h (
  capture_id UUID, event VARCHAR, unit VARCHAR, hour_ns BIGINT, comm VARCHAR, cgroup VARCHAR,
  stack_id UUID, samples UBIGINT, value UBIGINT);
CREATE TABLE IF NOT EXISTS stacks (stack_id UUID, frame_ids UBIGINT[], depth UINTEGER);
CREATE TABLE IF NOT EXISTS frames (
  frame_id UBIGINT, inline_depth UINTEGER, build_id VARCHAR, address UBIGINT, module VARCHAR,
  function VARCHAR, signature VARCHAR, source_file VARCHAR, line UINTEGER, kind VARCHAR);
CREATE TABLE IF NOT EXISTS events (
  capture_id UUID, host VARCHAR, service VARCHAR, event VARCHAR, ts_ns BIGINT, cpu INTEGER, pid INTEGER,
  tid INTEGER, comm VARCHAR, stack_id UUID, value UBIGINT, payload VARCHAR);
CREATE TABLE IF NOT EXISTS losses (
  capture_id UUID, event VARCHAR, cgroup VARCHAR, cpu INTEGER, lost UBIGINT);

-- section: csv
header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '\N',
allow_quoted_nulls = false, max_line_size = 33554432

-- section: captures_rows
read_csv(@captures_file@, @csv@, columns = {
  capture_id: 'UUID', file: 'VARCHAR', host: 'VARCHAR', service: 'VARCHAR', release: 'VARCHAR',
  host_class: 'VARCHAR', kernel: 'VARCHAR', arch: 'VARCHAR', cpus: 'INTEGER', start_ns: 'BIGINT',
  end_ns: 'BIGINT', clock: 'VARCHAR', command: 'VARCHAR', recorder: 'VARCHAR', samples: 'UBIGINT',
  lost: 'UBIGINT'})

-- section: samples_rows
read_csv(@samples_file@, @csv@, columns = {
  capture_id: 'UUID', host: 'VARCHAR', service: 'VARCHAR', event: 'VARCHAR', ts_ns: 'BIGINT',
  cpu: 'INTEGER', pid: 'INTEGER', tid: 'INTEGER', comm: 'VARCHAR', cgroup: 'VARCHAR', stack_id: 'UUID',
  value: 'UBIGINT', unit: 'VARCHAR'})

-- section: stacks_rows
read_csv(@stacks_file@, @csv@, columns = {stack_id: 'UUID', frame_ids: 'UBIGINT[]', depth: 'UINTEGER'})

-- section: frames_rows
read_csv(@frames_file@, @csv@, columns = {
  frame_id: 'UBIGINT', inline_depth: 'UINTEGER', build_id: 'VARCHAR', address: 'UBIGINT',
  module: 'VARCHAR', function: 'VARCHAR', signature: 'VARCHAR', source_file: 'VARCHAR', line: 'UINTEGER', kind: 'VARCHAR'})

-- section: events_rows
read_csv(@events_file@, @csv@, columns = {
  capture_id: 'UUID', host: 'VARCHAR', service: 'VARCHAR', event: 'VARCHAR', ts_ns: 'BIGINT',
  cpu: 'INTEGER', pid: 'INTEGER', tid: 'INTEGER', comm: 'VARCHAR', stack_id: 'UUID', value: 'UBIGINT',
  payload: 'VARCHAR'})

-- section: losses_rows
read_csv(@losses_file@, @csv@, columns = {
  capture_id: 'UUID', event: 'VARCHAR', cgroup: 'VARCHAR', cpu: 'INTEGER', lost: 'UBIGINT'})

-- One capture into empty tables, for `tacho sql`.
-- section: fill
INSERT INTO captures SELECT * FROM @captures_rows@;
INSERT INTO samples SELECT * FROM @samples_rows@;
INSERT INTO stacks SELECT * FROM @stacks_rows@;
INSERT INTO frames SELECT * FROM @frames_rows@;
INSERT INTO events SELECT * FROM @events_rows@;
INSERT INTO losses SELECT * FROM @losses_rows@;

-- How much is known of a frame's name: nothing, where its function begins, or the name.
-- section: name_rank
CASE WHEN function = '' THEN 0 WHEN kind = 'unnamed' THEN 1 ELSE 2 END

-- One capture, whole or not at all. Frames that had no name get the names that this capture knows.
-- section: load
BEGIN;
INSERT INTO samples SELECT * FROM @samples_rows@;
INSERT INTO samples_1h
  SELECT capture_id, event, unit, ts_ns // 3600000000000 * 3600000000000, comm, cgroup, stack_id, count(*),
         least(sum(value), 18446744073709551615)
  FROM samples WHERE capture_id = CAST($capture AS UUID) GROUP BY ALL;
INSERT INTO stacks SELECT * FROM @stacks_rows@ ANTI JOIN stacks USING (stack_id);
CREATE OR REPLACE TEMP TABLE new_frames AS SELECT * FROM @frames_rows@;
DELETE FROM frames WHERE frame_id IN (
  SELECT known.frame_id
  FROM (SELECT frame_id, @name_rank@ AS rank FROM frames WHERE inline_depth = 0) AS known
  JOIN (SELECT frame_id, @name_rank@ AS rank FROM new_frames WHERE inline_depth = 0) AS found USING (frame_id)
  WHERE found.rank > known.rank);
INSERT INTO frames SELECT * FROM new_frames ANTI JOIN frames USING (frame_id);
DROP TABLE new_frames;
INSERT INTO events SELECT * FROM @events_rows@;
INSERT INTO losses SELECT * FROM @losses_rows@;
INSERT INTO captures SELECT * FROM @captures_rows@;
COMMIT;

-- section: has_capture
SELECT 1 FROM captures WHERE capture_id = CAST($capture AS UUID)

-- section: chosen
SELECT capture_id FROM captures
WHERE ($service = '' OR service = $service) AND ($release = '' OR release = $release)
  AND ($host = '' OR host = $host) AND ($host_class = '' OR host_class = $host_class)
  AND ($kernel = '' OR kernel = $kernel)
  AND start_ns <= CAST($to_ns AS BIGINT) AND end_ns >= CAST($from_ns AS BIGINT)

-- The events of the chosen captures, the most samples first.
-- section: events
SELECT event, unit, sum(samples) AS samples, sum(value) AS value
FROM samples_1h WHERE capture_id IN (@chosen@)
GROUP BY event, unit ORDER BY 3 DESC, event

-- Sums by stack: of whole hours from samples_1h, of other times from samples. Stacks are joined to frames only
-- after they are added up.
-- section: sums
SELECT stack_id, sum(value) AS value FROM samples_1h
WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
  AND ($comm = '' OR comm = $comm)
  AND hour_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
GROUP BY stack_id

-- section: sums_between
SELECT stack_id, sum(value) AS value FROM samples
WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
  AND ($comm = '' OR comm = $comm)
  AND ts_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
GROUP BY stack_id

-- section: stack_sums
SELECT frame_ids, CAST(least(value, 18446744073709551615) AS UBIGINT) FROM (@sums@) AS sums JOIN stacks USING (stack_id)

-- section: stack_sums_between
SELECT frame_ids, CAST(least(value, 18446744073709551615) AS UBIGINT) FROM (@sums_between@) AS sums JOIN stacks USING (stack_id)

-- section: frame_names
SELECT frame_id, inline_depth, function, module, kind, signature FROM frames ORDER BY frame_id, inline_depth DESC

-- section: stacks_of_function
SELECT stack_id FROM stacks WHERE $function = '' OR list_has_any(
  frame_ids, (SELECT list(frame_id) FROM frames WHERE function = $function))

-- A function's share of all samples, by time. As with the sums there are two sections: for whole hours, and for other times.
-- section: series
SELECT CAST(make_timestamp_ns(step * CAST($step_ns AS BIGINT)) AS VARCHAR) AS time, total, function_value FROM (
  SELECT hour_ns // CAST($step_ns AS BIGINT) AS step, sum(value) AS total,
         sum(CASE WHEN stack_id IN (@stacks_of_function@) THEN value ELSE 0 END) AS function_value
  FROM samples_1h
  WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
    AND ($comm = '' OR comm = $comm)
    AND hour_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
  GROUP BY step)
ORDER BY step

-- section: series_between
SELECT CAST(make_timestamp_ns(step * CAST($step_ns AS BIGINT)) AS VARCHAR) AS time, total, function_value FROM (
  SELECT ts_ns // CAST($step_ns AS BIGINT) AS step, sum(value) AS total,
         sum(CASE WHEN stack_id IN (@stacks_of_function@) THEN value ELSE 0 END) AS function_value
  FROM samples
  WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
    AND ($comm = '' OR comm = $comm)
    AND ts_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
  GROUP BY step)
ORDER BY step

-- The captures behind a cell, those with most of the function first.
-- section: captures
SELECT file, host, service, release, CAST(make_timestamp_ns(start_ns) AS VARCHAR) AS start,
       sum(s.samples) AS samples, sum(s.value) AS value
FROM samples_1h AS s JOIN captures USING (capture_id)
WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
  AND ($comm = '' OR comm = $comm) AND stack_id IN (@stacks_of_function@)
  AND hour_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
GROUP BY ALL ORDER BY value DESC, file

-- section: captures_between
SELECT file, c.host, c.service, release, CAST(make_timestamp_ns(start_ns) AS VARCHAR) AS start,
       count(*) AS samples, sum(s.value) AS value
FROM samples AS s JOIN captures AS c USING (capture_id)
WHERE event = $event AND capture_id IN (@chosen@) AND ($cgroup = '' OR cgroup = $cgroup)
  AND ($comm = '' OR comm = $comm) AND stack_id IN (@stacks_of_function@)
  AND ts_ns BETWEEN CAST($from_ns AS BIGINT) AND CAST($to_ns AS BIGINT)
GROUP BY ALL ORDER BY value DESC, file
