# What the report makes of foreign bytes: rule files of tacho check, payloads by schema, tracepoint formats, their print formats compiled, names,
# folded lines, frames of the screen, whole captures through the views and through convert, and profiles of other tools through import.
tacho_fuzz(tacho_report
  fuzz_check_rules fuzz_screen_frame fuzz_bpf_code fuzz_payload fuzz_tracepoint fuzz_print_format fuzz_names fuzz_views fuzz_two_threads fuzz_convert
  fuzz_import_folded fuzz_import_pprof fuzz_import_speedscope fuzz_import_cpu_profile)
