# Parsers of symbolize: texts from capture and host, ELF files as libelf hands them on, mangled names.
foreach(target kallsyms perf_map jitdump elf_symbols demangle dwarf_lines cfi)
  tacho_fuzz(fuzz_${target} ${CMAKE_CURRENT_LIST_DIR}/fuzz_${target}.cc)
  if(TARGET fuzz_${target})
    target_link_libraries(fuzz_${target} PRIVATE tacho_symbolize)
  endif()
endforeach()
