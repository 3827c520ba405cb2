// Calls getppid(2) from goroutines, deferred functions, a sort's comparisons and recursion: bench/user_stacks.py takes each call's stack.
package main
import ("fmt"; "os"; "sort"; "strings"; "sync"; "syscall")
func hit() { syscall.Getppid() }
//go:noinline
func rec(n int, m map[string]int) int { if n == 0 { hit(); return 1 }; m[fmt.Sprintf("k%d", n)] = n; return rec(n-1, m) + len(m) }
func main() {
  f, _ := os.OpenFile("/dev/null", os.O_WRONLY, 0)
  for i := 0; i < 12; i++ {
    rec(30, map[string]int{})
    v := make([]int, 60); for j := range v { v[j] = (j * 7919) % 61 }
    sort.Slice(v, func(a, b int) bool { hit(); return v[a] < v[b] })
    var w sync.WaitGroup
    for j := 0; j < 4; j++ { w.Add(1); go func() { defer w.Done(); rec(10, map[string]int{}); fmt.Fprintln(f, strings.Repeat("x", 50)) }() }
    w.Wait()
    func() { defer func() { recover(); hit() }(); panic("x") }()
  }
}
