// Calls getppid(2) from a panic's drops, a sort's comparisons, recursion and threads: bench/user_stacks.py takes each call's stack.
use std::collections::BTreeMap;
extern "C" { fn getppid() -> i32; }
fn hit() { unsafe { getppid(); } }
#[inline(never)] fn rec(n: u32, m: &mut BTreeMap<String, u32>) -> u32 { if n == 0 { hit(); return 1; } m.insert(format!("k{}", n), n); let r = rec(n - 1, m) + m.len() as u32; r }
struct D; impl Drop for D { fn drop(&mut self) { hit(); } }
#[inline(never)] fn panics(n: u32) -> u32 { let _d = D; if n == 0 { panic!("x") } panics(n - 1) + 1 }
fn main() {
  std::panic::set_hook(Box::new(|_| hit()));
  for _ in 0..12 {
    let mut m = BTreeMap::new(); rec(30, &mut m);
    let mut v: Vec<u32> = (0..60).map(|x| (x * 7919) % 61).collect(); v.sort_by(|a, b| { hit(); a.cmp(b) });
    let _ = std::panic::catch_unwind(|| panics(10));
    std::thread::spawn(|| { let mut m = BTreeMap::new(); rec(10, &mut m); }).join().unwrap();
  }
}
