//! planted CAUSE [SECONDS [TRUTH_FILE]]: causes of planted.cc in Rust, with the same truth.
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

extern "C" {
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    fn prctl(option: i32, name: *const u8, a: u64, b: u64, c: u64) -> i32;
}

/// Where the time of a thread went, in ns.
#[derive(Clone, Copy, Default)]
struct Times {
    wall: i64,
    cpu: i64,
    runnable: i64,
}

impl Times {
    fn now() -> Times {
        let clock = |number| {
            let mut time = [0; 2];
            unsafe { clock_gettime(number, &mut time) };
            time[0] * 1_000_000_000 + time[1]
        };
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let runnable = text.split(' ').nth(1).unwrap().parse().unwrap();
        Times { wall: clock(1), cpu: clock(3), runnable }
    }
    fn add_since(&mut self, begin: Times) {
        let end = Times::now();
        self.wall += end.wall - begin.wall;
        self.cpu += end.cpu - begin.cpu;
        self.runnable += end.runnable - begin.runnable;
    }
    fn blocked(&self) -> i64 {
        self.wall - self.cpu - self.runnable
    }
}

struct Worker {
    name: String,
    end: Instant,
    cause: Times,
    life: Times,
}

impl Worker {
    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

#[inline(never)]
fn compute(count: u32) {
    for i in 0..count {
        std::hint::black_box(i);
    }
}

#[inline(never)]
fn hot_function() {
    for i in 0..1_000_000u32 {
        std::hint::black_box(i);
    }
}

#[inline(never)]
fn serve(me: &mut Worker) {
    while !me.is_over() {
        let begin = Times::now();
        hot_function();
        me.cause.add_since(begin);
        compute(150_000);
    }
}

static CACHE_LOCK: Mutex<u64> = Mutex::new(0);

#[inline(never)]
fn store_under_lock(me: &mut Worker) {
    let begin = Times::now();
    let mut count = CACHE_LOCK.lock().unwrap();
    me.cause.add_since(begin);
    *count += 1;
}

#[inline(never)]
fn store(me: &mut Worker) {
    while !me.is_over() {
        compute(50_000);
        store_under_lock(me);
    }
}

#[inline(never)]
fn flush_log(file: &File) {
    let _count = CACHE_LOCK.lock().unwrap();
    for part in 0..16 {
        file.write_all_at(&[0; 16 << 10], part << 20).unwrap();
        file.sync_all().unwrap();
    }
}

#[inline(never)]
fn flush(me: &mut Worker) {
    let name = format!("planted-{}.dat", std::process::id());
    let file = OpenOptions::new().write(true).create(true).open(&name).unwrap();
    while !me.is_over() {
        flush_log(&file);
        compute(100_000);
    }
    std::fs::remove_file(name).unwrap();
}

type Role = (&'static str, fn(&mut Worker));

fn run(roles: &[Role], seconds: f64) -> Vec<Worker> {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let start = |&(name, body): &Role| {
        let mut me = Worker { name: name.to_string(), end, cause: Times::default(), life: Times::default() };
        std::thread::spawn(move || {
            unsafe { prctl(15, format!("{}\0", me.name).as_ptr(), 0, 0, 0) }; // PR_SET_NAME
            let begin = Times::now();
            body(&mut me);
            me.life.add_since(begin);
            me
        })
    };
    let threads: Vec<_> = roles.iter().map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let seconds = words.get(2).map_or(3.0, |text| text.parse().unwrap());
    let (what, kind, roles): (&str, fn(&Times) -> i64, Vec<Role>) = match words[1].as_str() {
        "hot" => (
            r#""cause":"cpu","function":"hot_function""#,
            |times| times.cpu,
            vec![("worker-0", serve), ("worker-1", serve)],
        ),
        "fsync" => (
            concat!(r#""cause":"lock","function":"store_under_lock","lock":"CACHE_LOCK","#,
                    r#""holder":{"comm":"flusher","function":"flush_log","doing":"disk"}"#),
            Times::blocked,
            vec![("flusher", flush), ("worker-0", store), ("worker-1", store), ("worker-2", store), ("worker-3", store)],
        ),
        _ => panic!("planted: hot or fsync"),
    };
    let workers = run(&roles, seconds);
    let wall: i64 = workers.iter().map(|each| each.life.wall).sum();
    let cause: i64 = workers.iter().map(|each| kind(&each.cause)).sum();
    let runnable: i64 = workers.iter().map(|each| each.life.runnable).sum();
    let threads: Vec<String> = workers.iter().map(|each| format!(
        r#""{}":{{"wall_ns":{},"cpu_ns":{},"runnable_ns":{},"blocked_ns":{},"idle_ns":0,"cause_ns":{}}}"#,
        each.name, each.life.wall, each.life.cpu, each.life.runnable, each.life.blocked(), kind(&each.cause))).collect();
    let text = format!(
        "{{{what},\"share\":{:.4},\"cause_ns\":{cause},\"wall_ns\":{wall},\"runnable_ns\":{runnable},\"idle_ns\":0,\"per_thread\":{{{}}}}}\n",
        cause as f64 / wall as f64, threads.join(","));
    match words.get(3) {
        Some(file) => std::fs::write(file, text).unwrap(),
        None => print!("{text}"),
    }
}
