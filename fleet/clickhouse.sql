-- The tables of many captures in ClickHouse, and the questions to them (docs/fleet.md): the same names and
-- columns as in duckdb.sql. tacho fleet runs the sections below by their names over HTTP; {name:Type} is a
-- parameter ('' is any), @name@ another section. By hand: clickhouse-client --multiquery < the section "schema".
-- On a cluster, replace the engines: samples and samples_1h ReplicatedMergeTree below a Distributed table sharded
-- by cityHash64(service), stacks and frames replicated to every shard.

-- section: schema
CREATE TABLE IF NOT EXISTS captures (
  capture_id UUID, file String, host LowCardinality(String), service LowCardinality(String),
  release LowCardinality(String), host_class LowCardinality(String), kernel LowCardinality(String),
  arch LowCardinality(String), cpus Int32, start_ns Int64, end_ns Int64, clock LowCardinality(String),
  command String, recorder LowCardinality(String), samples UInt64, lost UInt64
) ENGINE = ReplacingMergeTree ORDER BY capture_id;
CREATE TABLE IF NOT EXISTS samples (
  capture_id UUID, host LowCardinality(String), service LowCardinality(String), event LowCardinality(String),
  ts_ns Int64 CODEC(Delta, ZSTD), cpu Int32, pid Int32, tid Int32, comm LowCardinality(String),
  cgroup LowCardinality(String), stack_id UUID, value UInt64, unit LowCardinality(String),
  loaded DateTime DEFAULT now()
) ENGINE = MergeTree PARTITION BY toDate(intDiv(ts_ns, 1000000000))
  ORDER BY (service, event, intDiv(ts_ns, 60000000000), stack_id)
  TTL loaded + INTERVAL 14 DAY;
CREATE TABLE IF NOT EXISTS samples_1h (
  capture_id UUID, event LowCardinality(String), unit LowCardinality(String), hour_ns Int64,
  comm LowCardinality(String), cgroup LowCardinality(String), stack_id UUID, samples UInt64, value UInt64,
  loaded DateTime DEFAULT now()
) ENGINE = SummingMergeTree((samples, value)) PARTITION BY toYYYYMM(toDate(intDiv(hour_ns, 1000000000)))
  ORDER BY (event, hour_ns, capture_id, unit, comm, cgroup, stack_id)
  TTL loaded + INTERVAL 400 DAY;
CREATE MATERIALIZED VIEW IF NOT EXISTS samples_to_1h TO samples_1h AS
  SELECT capture_id, event, unit, intDiv(ts_ns, 3600000000000) * 3600000000000 AS hour_ns, comm, cgroup, stack_id,
         count() AS samples, sum(value) AS value
  FROM samples GROUP BY capture_id, event, unit, hour_ns, comm, cgroup, stack_id;
CREATE TABLE IF NOT EXISTS stacks (stack_id UUID, frame_ids Array(UInt64), depth UInt32)
  ENGINE = ReplacingMergeTree ORDER BY stack_id;
CREATE TABLE IF NOT EXISTS frames (
  frame_id UInt64, inline_depth UInt32, build_id String, address UInt64, module LowCardinality(String),
  function String, signature String, source_file String, line UInt32, kind LowCardinality(String),
  name_rank UInt8 MATERIALIZED multiIf(function = '', 0, kind = 'unnamed', 1, 2)
) ENGINE = ReplacingMergeTree(name_rank) ORDER BY (frame_id, inline_depth);
-- Databases of 2026-11-28 and before have is_named in its place.
ALTER TABLE frames ADD COLUMN IF NOT EXISTS
  name_rank UInt8 MATERIALIZED multiIf(function = '', 0, kind = 'unnamed', 1, 2);
CREATE TABLE IF NOT EXISTS events (
  capture_id UUID, host LowCardinality(String), service LowCardinality(String), event LowCardinality(String),
  ts_ns Int64, cpu Int32, pid Int32, tid Int32, comm LowCardinality(String), stack_id UUID, value UInt64,
  payload String, loaded DateTime DEFAULT now()
) ENGINE = MergeTree PARTITION BY toDate(intDiv(ts_ns, 1000000000)) ORDER BY (service, event, ts_ns)
  TTL loaded + INTERVAL 14 DAY;
CREATE TABLE IF NOT EXISTS losses (
  capture_id UUID, event LowCardinality(String), cgroup LowCardinality(String), cpu Int32, lost UInt64
) ENGINE = ReplacingMergeTree ORDER BY (capture_id, event, cgroup, cpu);

-- A load is: this section, for rows of one that was interrupted; then the files of the tables as CSVWithNames,
-- that of captures last.
-- section: clear
DELETE FROM samples WHERE capture_id = {capture:UUID};
DELETE FROM samples_1h WHERE capture_id = {capture:UUID};
DELETE FROM events WHERE capture_id = {capture:UUID};

-- section: has_capture
SELECT 1 FROM captures WHERE capture_id = {capture:UUID} LIMIT 1

-- section: chosen
SELECT capture_id FROM captures
WHERE ({service:String} = '' OR service = {service:String}) AND ({release:String} = '' OR release = {release:String})
  AND ({host:String} = '' OR host = {host:String}) AND ({host_class:String} = '' OR host_class = {host_class:String})
  AND ({kernel:String} = '' OR kernel = {kernel:String})
  AND start_ns <= {to_ns:Int64} AND end_ns >= {from_ns:Int64}

-- section: events
SELECT event, unit, sum(samples) AS samples, sum(value) AS value
FROM samples_1h WHERE capture_id IN (@chosen@)
GROUP BY event, unit ORDER BY 3 DESC, event

-- section: stack_sums
SELECT frame_ids, value, n FROM (
  SELECT stack_id, sum(value) AS value, sum(samples) AS n FROM samples_1h
  WHERE event = {event:String} AND capture_id IN (@chosen@)
    AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
    AND hour_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
  GROUP BY stack_id) AS sums
JOIN (SELECT stack_id, any(frame_ids) AS frame_ids FROM stacks GROUP BY stack_id) AS stacks USING (stack_id)

-- section: stack_sums_between
SELECT frame_ids, value, n FROM (
  SELECT stack_id, sum(value) AS value, count() AS n FROM samples
  WHERE event = {event:String} AND capture_id IN (@chosen@)
    AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
    AND ts_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
  GROUP BY stack_id) AS sums
JOIN (SELECT stack_id, any(frame_ids) AS frame_ids FROM stacks GROUP BY stack_id) AS stacks USING (stack_id)

-- section: frame_names
SELECT frame_id, inline_depth, argMax(function, name_rank), argMax(module, name_rank), argMax(kind, name_rank),
       argMax(signature, name_rank)
FROM frames GROUP BY frame_id, inline_depth ORDER BY frame_id, inline_depth DESC

-- section: stacks_of_function
SELECT stack_id FROM stacks WHERE {function:String} = '' OR hasAny(
  frame_ids, (SELECT groupUniqArray(frame_id) FROM frames WHERE function = {function:String}))

-- section: series
SELECT toString(toDateTime64(step * {step_ns:Int64} / 1000000000, 0)) AS time, total, function_value FROM (
  SELECT intDiv(hour_ns, {step_ns:Int64}) AS step, sum(value) AS total,
         sumIf(value, stack_id IN (@stacks_of_function@)) AS function_value
  FROM samples_1h
  WHERE event = {event:String} AND capture_id IN (@chosen@)
    AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
    AND hour_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
  GROUP BY step)
ORDER BY step

-- section: series_between
SELECT toString(toDateTime64(step * {step_ns:Int64} / 1000000000, 0)) AS time, total, function_value FROM (
  SELECT intDiv(ts_ns, {step_ns:Int64}) AS step, sum(value) AS total,
         sumIf(value, stack_id IN (@stacks_of_function@)) AS function_value
  FROM samples
  WHERE event = {event:String} AND capture_id IN (@chosen@)
    AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
    AND ts_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
  GROUP BY step)
ORDER BY step

-- section: captures
SELECT file, host, service, release, toString(toDateTime64(start_ns / 1000000000, 0)) AS start,
       sum(s.samples) AS samples, sum(s.value) AS value
FROM samples_1h AS s JOIN captures USING (capture_id)
WHERE event = {event:String} AND capture_id IN (@chosen@)
  AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
  AND stack_id IN (@stacks_of_function@) AND hour_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
GROUP BY capture_id, file, host, service, release, start_ns ORDER BY value DESC, file

-- section: captures_between
SELECT file, c.host AS host, c.service AS service, release, toString(toDateTime64(start_ns / 1000000000, 0)) AS start,
       count() AS samples, sum(s.value) AS value
FROM samples AS s JOIN captures AS c USING (capture_id)
WHERE event = {event:String} AND capture_id IN (@chosen@)
  AND ({cgroup:String} = '' OR cgroup = {cgroup:String}) AND ({comm:String} = '' OR comm = {comm:String})
  AND stack_id IN (@stacks_of_function@) AND ts_ns BETWEEN {from_ns:Int64} AND {to_ns:Int64}
GROUP BY capture_id, file, host, service, release, start_ns ORDER BY value DESC, file
