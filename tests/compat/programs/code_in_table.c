// Spends its time in code that its symbol table calls a variable, as some hand-written assembly is called; called by a
// function, and by such code.
#include <stdlib.h>

void table_outer(long rounds);
void table_inner(long rounds);

__asm__(
    ".text\n"
    ".globl table_inner\n"
    ".type table_inner, @object\n"
    "table_inner:\n"
    "  push %rbp\n  mov %rsp, %rbp\n"
    "1: imul %rax, %rax\n  nop\n  dec %rdi\n  jnz 1b\n"
    "  pop %rbp\n  ret\n"
    ".size table_inner, . - table_inner\n"
    ".globl table_outer\n"
    ".type table_outer, @object\n"
    "table_outer:\n"
    "  push %rbp\n  mov %rsp, %rbp\n  push %rdi\n  push %rdi\n"
    "  call table_inner\n"
    "  pop %rdi\n  pop %rdi\n"
    "1: imul %rax, %rax\n  dec %rdi\n  jnz 1b\n"
    "  pop %rbp\n  ret\n"
    ".size table_outer, . - table_outer\n");

int main(int count, char** words) {
  const long rounds = count > 1 ? atol(words[1]) : 30000000;
  table_inner(rounds);
  table_outer(rounds);
  return 0;
}
