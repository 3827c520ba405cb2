"""planted.py CAUSE [SECONDS [TRUTH_FILE]]: causes of planted.cc in Python, with the same truth. "native": functions that
stand for the one in Python where its frames cannot be seen. "least", "most": of the share."""
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter


def now():
    """Where the time of the calling thread went until now, in ns."""
    with open("/proc/thread-self/schedstat") as file:
        runnable = int(file.read().split()[1])
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    return Counter(wall=wall, cpu=cpu, runnable=runnable, blocked=wall - cpu - runnable)


def since(begin):
    end = now()
    end.subtract(begin)
    return end


class Worker(threading.Thread):
    def __init__(self, name, body, seconds):
        super().__init__(name=name)
        self.body = body
        self.end = time.monotonic() + seconds
        self.cause = Counter()

    def run(self):
        ctypes.CDLL(None).prctl(15, self.name.encode(), 0, 0, 0)  # PR_SET_NAME
        begin = now()
        self.body(self)
        self.life = since(begin)

    def is_over(self):
        return time.monotonic() >= self.end


def compute(count):
    value = 1
    for _ in range(count):
        value = value * 1664525 + 1013904223 & 0xffffffff


def hot_function():
    value = 1
    for _ in range(20000):
        value = value * 1664525 + 1013904223 & 0xffffffff


def serve(me):
    while not me.is_over():
        begin = now()
        hot_function()
        me.cause += since(begin)
        compute(2000)


cache_lock = threading.Lock()


def store_under_lock(me):
    begin = now()
    with cache_lock:
        me.cause += since(begin)


def store(me):
    while not me.is_over():
        compute(200)
        store_under_lock(me)


def flush_log(file):
    with cache_lock:
        for _ in range(8):
            os.pwrite(file, b"entry\n" * 3000, 0)
            os.fsync(file)


def flush(me):
    name = f"planted-{os.getpid()}.dat"
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    while not me.is_over():
        flush_log(file)
        time.sleep(0.0005)
    os.close(file)
    os.unlink(name)


def start_backend():
    """The address of a process that answers each byte after 20 ms; it waits in epoll alone."""
    listening = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        answer_late(listening)
    return listening.getsockname()


def answer_late(listening):
    import select
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(15, b"backend", 0, 0, 0)
    polled = select.epoll()
    polled.register(listening, select.EPOLLIN)
    connections, answers = {}, []
    while True:
        while answers and answers[0][0] <= time.monotonic():
            os.write(answers.pop(0)[1], b"!")
        for file, _ in polled.poll(max(0, answers[0][0] - time.monotonic()) if answers else None):
            if file == listening.fileno():
                connection = listening.accept()[0]
                connections[connection.fileno()] = connection
                polled.register(connection, select.EPOLLIN)
            elif os.read(file, 1):
                answers.append((time.monotonic() + 0.02, file))
            else:
                polled.unregister(file)


def call_backend(backend):
    backend.send(b"?")
    backend.recv(1)


def serve_from_backend(me, address):
    with socket.create_connection(address) as backend:
        while not me.is_over():
            begin = now()
            call_backend(backend)
            me.cause += since(begin)


def spawn_helper():
    subprocess.run(["/bin/true"], check=True)


def serve_by_helpers(me):
    while not me.is_over():
        begin = now()
        spawn_helper()
        me.cause += since(begin)


def peer():
    address = start_backend()
    return ({"cause": "network", "function": "call_backend", "peer": "{}:{}".format(*address), "native": ["recv", "__libc_recv"]},
            "blocked", [(f"worker-{i}", lambda me: serve_from_backend(me, address)) for i in range(3)])


CAUSES = {
    "hot": lambda: ({"cause": "cpu", "function": "hot_function", "native": ["_PyEval_EvalFrameDefault"]}, "cpu", [("worker", serve)]),
    "fsync": lambda: ({"cause": "lock", "function": "store_under_lock", "native": ["PyThread_acquire_lock_timed"]},
                      "blocked", [("flusher", flush), *((f"worker-{i}", store) for i in range(3))]),
    "peer": peer,
    "forks": lambda: ({"cause": "fork", "function": "spawn_helper", "native": ["subprocess_fork_exec", "fork_exec", "os_waitpid"]},
                      "wall", [("worker", serve_by_helpers)]),
}


def main(cause, seconds="3", truth_file=None):
    truth, kind, roles = CAUSES[cause]()
    threads = [Worker(name, body, float(seconds)) for name, body in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = sum(thread.life["wall"] for thread in threads)
    time_of_cause = sum(thread.cause[kind] for thread in threads)
    if truth["cause"] == "cpu":  # the interpreter does all of it, where its frames cannot be seen
        truth["most"] = round(sum(thread.life["cpu"] for thread in threads) / wall, 4)
    if truth["cause"] == "fork":  # without what the interpreter does on the CPU
        truth["least"] = round(sum(thread.cause["wall"] - thread.cause["cpu"] for thread in threads) / wall, 4)
    truth |= {"pid": os.getpid(), "share": round(time_of_cause / wall, 4), "cause_ns": time_of_cause, "wall_ns": wall,
              "runnable_ns": sum(thread.life["runnable"] for thread in threads), "idle_ns": 0,
              "per_thread": {thread.name: {f"{name}_ns": thread.life[name] for name in ("wall", "cpu", "runnable", "blocked")}
                             | {"idle_ns": 0, "cause_ns": thread.cause[kind]} for thread in threads}}
    with open(truth_file, "w") if truth_file else sys.stdout as file:
        file.write(json.dumps(truth) + "\n")


if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    main(*sys.argv[1:])
