// Arguments by the calling convention of arm64: integers, floating-point numbers, structs in registers and by address.
struct pair {
  long first, second;
};
struct point {
  double x, y;
};
struct large {
  long values[4];
};
static volatile long sink;

void mixed(long a, double x, int b, float y, const char *text) { sink += a + (long)x + b + (long)y + *text; }
void with_pair(int before, struct pair both, long after) { sink += before + both.first + both.second + after; }
void with_point(long a, struct point at, double z, long b) { sink += a + (long)(at.x + at.y + z) + b; }
void with_large(struct large many, long after) { sink += many.values[3] + after; }
struct large returns_large(long a) { return (struct large){{a, sink, a, sink}}; }
void on_stack(long a, long b, long c, long d, long e, long f, long g, long h, long i, int j) {
  sink += a + b + c + d + e + f + g + h + i + j;
}
