"""A file of a file system that stops answering: `hanging_file.py FOLDER FILE [SILENT]` mounts one on FOLDER, where FILE stands as "file",
says "ready", and answers the kernel until it is stopped (SIGSTOP) or ends. After SIGUSR1 it takes what the kernel asks and
answers nothing: who waits for that cannot be ended (state D) until the server ends. SILENT: it leaves only these operations
without an answer, as READ,FLUSH. Needs root, or a user namespace, and /dev/fuse."""
import ctypes
import os
import signal
import stat
import struct
import sys
import time

# Of linux/fuse.h
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27
BATCH_FORGET = 42
ROOT, FILE = 1, 2  # nodes
ENOENT, ENOSYS = 2, 38
IN_HEADER = struct.Struct("<IIQQIIIHH")
OUT_HEADER = struct.Struct("<IiQ")
NO_LIMIT = 1 << 20  # bytes and seconds


def attributes(node, size):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    now = int(time.time())
    return struct.pack("<6Q3I7I", node, size, (size + 511) // 512, now, now, now, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, folder, content, silent):
        self.content, self.device, self.answers, self.silent = content, os.open("/dev/fuse", os.O_RDWR), True, silent
        signal.signal(signal.SIGUSR1, self.fall_silent)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if ctypes.CDLL(None, use_errno=True).mount(b"hanging", os.fsencode(folder), b"fuse", 0, options) != 0:
            raise OSError(ctypes.get_errno(), "mount")

    def fall_silent(self, *_):
        self.answers = False

    def answer(self, operation, node, body):
        """Bytes, or a number of an error; None: nothing is to be said."""
        size = len(self.content) if node == FILE else 0
        if operation == INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, NO_LIMIT, 0, 16, 12, NO_LIMIT, 1, 32, 0, 0, *[0] * 7)
        if operation == LOOKUP:
            return struct.pack("<4Q2I", FILE, 1, 0, 0, 0, 0) + attributes(FILE, len(self.content)) if body == b"file\0" else -ENOENT
        if operation == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + attributes(node, size)
        if operation == STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 1, 0, 0)
        if operation == READ:
            offset, count = struct.unpack_from("<QI", body, 8)
            return self.content[offset:offset + count]
        if operation in (FORGET, BATCH_FORGET):
            return None
        return b"" if operation in (RELEASE, FLUSH) else -ENOSYS

    def run(self):
        while True:
            try:
                asked = os.read(self.device, NO_LIMIT + 4096)
            except OSError:
                return  # it is mounted no more
            _, operation, unique, node, *_ = IN_HEADER.unpack_from(asked)
            if not self.answers and (not self.silent or operation in self.silent):
                continue
            said = self.answer(operation, node, asked[IN_HEADER.size:])
            if said is None:
                continue
            error, body = (said, b"") if isinstance(said, int) else (0, said)
            os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(body), error, unique) + body)


if __name__ == "__main__":
    with open(sys.argv[2], "rb") as source:
        server = Server(sys.argv[1], source.read(), [globals()[name] for name in sys.argv[3].split(",")] if len(sys.argv) > 3 else [])
    print("ready", flush=True)
    server.run()
