# Every kind of name that a choice has to be made about; 16 bytes each, so that tests can count on the places.
  .section .init, "ax"
  .globl _init
  .type _init, @function
_init: .skip 16                       # no size: reaches to the next symbol, over the PLT

  .text
  .balign 0x100
  .globl outer                        # +0x00: a function with another inside
  .type outer, @function
outer: .skip 16
  .type inner, @function
inner: .skip 16
  .size inner, 16
label: .skip 16                       # a bare label in the code
  .hidden hidden_label
hidden_label: .skip 16
  .size outer, 64

  .globl __underscored                # +0x40: aliases, global before weak and local, few underscores before many
  .type __underscored, @function
__underscored:
  .globl global_name
  .type global_name, @function
global_name:
  .weak weak_name_that_is_longer
  .type weak_name_that_is_longer, @function
weak_name_that_is_longer:
  .type local_name_that_is_longest, @function
local_name_that_is_longest: .skip 16
  .size __underscored, 16
  .size global_name, 16
  .size weak_name_that_is_longer, 16
  .size local_name_that_is_longest, 16

  .globl short_c                      # +0x50: the readable name counts, _ZN3geo4areaEv is geo::area
  .type short_c, @function
short_c_longer:
  .globl short_c_longer
  .type short_c_longer, @function
short_c:
  .globl _ZN3geo4areaEv
  .type _ZN3geo4areaEv, @function
_ZN3geo4areaEv: .skip 16
  .size short_c, 16
  .size short_c_longer, 16
  .size _ZN3geo4areaEv, 16

  .globl _ZN3geo6volumeEi             # +0x60
  .type _ZN3geo6volumeEi, @function
_ZN3geo6volumeEi: .skip 16
  .size _ZN3geo6volumeEi, 16

  .globl calls                        # +0x70: needs the PLT
  .type calls, @function
calls:
  call write_it@plt
  call _ZN3geo4openEv@plt
  .skip 6
  .size calls, 16

  .data
  .globl object
  .type object, @object
object: .skip 16
  .size object, 16
