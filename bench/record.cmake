# What recording costs: the whole recorder beside a load that makes a known number of events. Needs root and clang.
tacho_bench(record_bench ${CMAKE_CURRENT_SOURCE_DIR}/record_bench.cc)
if(TACHO_BENCH)
  add_executable(bench_getppid_load ${PROJECT_SOURCE_DIR}/tests/live/getppid_load.c)
  # The name of the process is what getppid_channel.bpf.c looks for.
  set_target_properties(bench_getppid_load PROPERTIES
    OUTPUT_NAME getppid_load RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/load)
  target_compile_options(bench_getppid_load PRIVATE -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls)
  add_dependencies(record_bench tacho-record bench_getppid_load)
  target_compile_definitions(record_bench PRIVATE
    TACHO_RECORD="$<TARGET_FILE:tacho-record>" TACHO_GETPPID_LOAD="$<TARGET_FILE:bench_getppid_load>"
    TACHO_LIVE_SOURCES="${PROJECT_SOURCE_DIR}/tests/live")
endif()
