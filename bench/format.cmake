tacho_bench(format_bench ${CMAKE_CURRENT_SOURCE_DIR}/format_bench.cc)
if(TACHO_BENCH)
  target_link_libraries(format_bench PRIVATE tacho_format)
endif()
