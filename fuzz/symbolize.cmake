# Parsers of symbolize: texts from capture and host, ELF files as libelf hands them on, mangled names.
tacho_fuzz(tacho_symbolize
  fuzz_kallsyms fuzz_simpleperf_symbols fuzz_perf_map fuzz_jitdump fuzz_elf_symbols fuzz_demangle fuzz_dwarf_lines fuzz_go_tables fuzz_cfi fuzz_symbol_pack
  fuzz_archive fuzz_kernel_core fuzz_source_sums)
