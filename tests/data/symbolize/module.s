# A kernel module as the kernel's build leaves it: nothing linked, each section a place of its own. The kernel puts the
# code that stays one section after the other, aligned, and what begins with .init elsewhere.
	.text
	.globl module_read
	.type module_read, @function
module_read:
	.fill 24, 1, 0x90
	ret
	.size module_read, . - module_read

	.section .init.text, "ax"
	.globl init_module
	.type init_module, @function
init_module:
	.fill 40, 1, 0x90
	ret
	.size init_module, . - init_module

	.section .text.unlikely, "ax"
	.p2align 4
	.type module_read.cold, @function
module_read.cold:
	.fill 8, 1, 0x90
	ret
	.size module_read.cold, . - module_read.cold

	.data
	.globl module_state
	.type module_state, @object
module_state:
	.quad 0
	.size module_state, 8

	.section .note.gnu.build-id, "a", @note
	.long 4, 20, 3
	.asciz "GNU"
	.byte 0x01,0x23,0x45,0x67,0x89,0xab,0xcd,0xef,0x01,0x23,0x45,0x67,0x89,0xab,0xcd,0xef,0x01,0x23,0x45,0x69
