# BPF object files, before libbpf sees them.
tacho_fuzz(tacho_bpf fuzz_btf_schema fuzz_elf_object)
