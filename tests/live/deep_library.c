// Opened by deep_load while it is recorded.
int deep_library(int depth, void (*leaf)(void));

__attribute__((noinline)) int deep_library(int depth, void (*leaf)(void)) {
  volatile int words[24];
  words[depth % 24] = depth;
  if (depth == 0)
    leaf();
  else
    words[1] += deep_library(depth - 1, leaf);
  return words[1] + words[depth % 24];
}
