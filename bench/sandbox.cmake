tacho_bench(sandbox_bench ${CMAKE_CURRENT_SOURCE_DIR}/sandbox_bench.cc)
if(TACHO_BENCH)
  target_link_libraries(sandbox_bench PRIVATE tacho_sandbox)
endif()
