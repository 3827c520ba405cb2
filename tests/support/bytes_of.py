"""All bytes of a capture: the file's own, and those of all zstd frames in it (compressed records, attachments, packed
symbols), frames within frames as well."""
import ctypes
from pathlib import Path

MAGIC = b"\x28\xb5\x2f\xfd"
LARGEST = 1 << 30  # bytes of a frame's content


def library():
    zstd = ctypes.CDLL("libzstd.so.1")
    for name in ("ZSTD_getFrameContentSize", "ZSTD_findFrameCompressedSize", "ZSTD_decompress"):
        getattr(zstd, name).restype = ctypes.c_ulonglong
    zstd.ZSTD_isError.restype = ctypes.c_uint
    return zstd


def inflated(data):
    """The contents of the frames in it, one after another. A frame that says nothing of its size was not written by tacho
    or perf."""
    zstd, at = library(), 0
    while (at := data.find(MAGIC, at)) >= 0:
        rest = ctypes.create_string_buffer(data[at:at + (64 << 20)])
        size = ctypes.c_size_t(len(rest) - 1)
        content, packed = zstd.ZSTD_getFrameContentSize(rest, size), zstd.ZSTD_findFrameCompressedSize(rest, size)
        at += len(MAGIC)
        if content > LARGEST or zstd.ZSTD_isError(ctypes.c_size_t(packed)):
            continue
        out = ctypes.create_string_buffer(max(content, 1))
        got = zstd.ZSTD_decompress(out, ctypes.c_size_t(content), rest, ctypes.c_size_t(packed))
        if got == content:
            yield out.raw[:content]


def capture(path):
    """The file's bytes, and the contents of its frames, two levels deep, with a mark in between."""
    pieces = [Path(path).read_bytes()]
    for frame in inflated(pieces[0]):
        pieces += [frame, *inflated(frame)]
    return b"\n----\n".join(pieces)
