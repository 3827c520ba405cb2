// planted CAUSE [SECONDS [TRUTH_FILE]]: causes of planted.cc in Go, with the same truth, of threads that goroutines keep.
// Waits of goroutines for locks and sockets are none of threads, so they are not among them.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Where the time of a thread went, in ns.
type times struct{ wall, cpu, runnable int64 }

func clockOf(number uintptr) int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func now() times {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		panic(err)
	}
	var cpu, runnable int64
	fmt.Sscan(string(text), &cpu, &runnable)
	return times{clockOf(1), clockOf(3), runnable}
}

func (sum *times) addSince(begin times) {
	end := now()
	sum.wall += end.wall - begin.wall
	sum.cpu += end.cpu - begin.cpu
	sum.runnable += end.runnable - begin.runnable
}

// What the runtime's own threads did until now.
func ofRuntime() (sum times) {
	folders, _ := filepath.Glob("/proc/self/task/*")
	for _, folder := range folders {
		name, _ := os.ReadFile(folder + "/comm")
		text, err := os.ReadFile(folder + "/schedstat")
		if err != nil || strings.HasPrefix(string(name), "worker-") {
			continue
		}
		var cpu, runnable int64
		fmt.Sscan(string(text), &cpu, &runnable)
		sum.wall += cpu + runnable
		sum.runnable += runnable
	}
	return
}

//go:noinline
func compute(count int) (value uint32) {
	for i := 0; i < count; i++ {
		value = value*1664525 + 1013904223
	}
	return
}

//go:noinline
func hotFunction(count int) (value uint32) {
	for i := 0; i < count; i++ {
		value = value*69069 + 1234567
	}
	return
}

//go:noinline
func handleRequest() { hotFunction(3000000) }

//go:noinline
func spawnHelper() {
	if err := exec.Command("/bin/true").Run(); err != nil {
		panic(err)
	}
}

type worker struct {
	name        string
	life, cause times
}

func (me *worker) serve(operation func(), rest int, end time.Time) {
	runtime.LockOSThread()
	name := append([]byte(me.name), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	begin := now()
	for time.Now().Before(end) {
		before := now()
		operation()
		me.cause.addSince(before)
		compute(rest)
	}
	me.life.addSince(begin)
}

func main() {
	seconds, file := 3.0, os.Stdout
	if len(os.Args) > 2 {
		seconds, _ = strconv.ParseFloat(os.Args[2], 64)
	}
	if len(os.Args) > 3 {
		file, _ = os.Create(os.Args[3])
	}
	operation, rest := handleRequest, 400000
	workers := []*worker{{name: "worker-0"}, {name: "worker-1"}}
	truth := map[string]any{"cause": "cpu", "function": "hotFunction"}
	kind := func(t times) int64 { return t.cpu }
	if os.Args[1] == "forks" {
		operation, rest = spawnHelper, 50000
		workers = workers[:1] // two would wait for the runtime's lock around fork and exec
		truth = map[string]any{"cause": "fork", "function": "spawnHelper"}
		kind = func(t times) int64 { return t.wall }
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var done sync.WaitGroup
	for _, each := range workers {
		done.Add(1)
		go func(me *worker) {
			defer done.Done()
			me.serve(operation, rest, end)
		}(each)
	}
	done.Wait()
	ofOthers := ofRuntime()
	wall, cause, runnable := ofOthers.wall, int64(0), ofOthers.runnable
	threads := map[string]any{}
	for _, each := range workers {
		wall += each.life.wall
		runnable += each.life.runnable
		cause += kind(each.cause)
		threads[each.name] = map[string]int64{"wall_ns": each.life.wall, "cpu_ns": each.life.cpu, "runnable_ns": each.life.runnable,
			"blocked_ns": each.life.wall - each.life.cpu - each.life.runnable, "idle_ns": 0, "cause_ns": kind(each.cause)}
	}
	if truth["cause"] == "fork" { // without what the runtime does on the CPU
		var onCPU int64
		for _, each := range workers {
			onCPU += each.cause.cpu
		}
		truth["least"] = math.Round(float64(cause-onCPU)/float64(wall)*1e4) / 1e4
	}
	truth["share"] = math.Round(float64(cause)/float64(wall)*1e4) / 1e4
	truth["cause_ns"], truth["wall_ns"], truth["runnable_ns"], truth["idle_ns"] = cause, wall, runnable, 0
	truth["per_thread"] = threads
	text, _ := json.Marshal(truth)
	if _, err := file.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}
