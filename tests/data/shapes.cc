// A program that is sampled for the copies of its stack: calls inlined into each other, templates, a lambda,
// recursion and code without frame pointers. It needs nothing of any system but the call that ends it.
//   g++ -O2 -g -fno-exceptions -fno-rtti -fomit-frame-pointer -nostdlib -static -Wl,--build-id,--eh-frame-hdr
//   shapes.cc
namespace shape {

template <class Number>
struct Box {
  Number width, height;
  __attribute__((always_inline)) Number area() const { return width * height; }
};

struct Visitor {
  virtual unsigned visit(unsigned depth) = 0;
};

}  // namespace shape

namespace {

unsigned volatile sink;

__attribute__((noinline)) unsigned churn(unsigned rounds) {
  unsigned state = rounds | 1;
  for (unsigned i = 0; i < rounds; ++i) {
    const shape::Box<unsigned> box{state, i | 3};
    const auto mix = [&state](unsigned other) __attribute__((always_inline)) {
      state ^= other + (state << 5) + (state >> 2);
    };
    mix(box.area());
  }
  return sink = state;
}

template <int Depth>
__attribute__((noinline)) unsigned nested(unsigned rounds) {
  return nested<Depth - 1>(rounds) + churn(rounds / 4) + Depth;
}
template <>
unsigned nested<0>(unsigned rounds) {
  return churn(rounds) + 1;
}

struct Climber final : shape::Visitor {
  __attribute__((noinline)) unsigned visit(unsigned depth) override {
    return depth == 0 ? nested<3>(200000) + 1 : visit(depth - 1) + churn(20000) + depth;
  }
};

}  // namespace

extern "C" [[noreturn]] void run() {
  Climber climber;
  for (unsigned i = 0; i < 80; ++i) climber.visit(5);
  asm volatile("syscall" : : "a"(231), "D"(0));
  __builtin_unreachable();
}

// The stack pointer is aligned as at a call's beginning.
asm(".globl _start\n.type _start, @function\n_start:\n.cfi_startproc\n.cfi_undefined rip\nxor %ebp, "
    "%ebp\ncall run\nhlt\n.cfi_endproc\n.size _start, . - _start\n");
