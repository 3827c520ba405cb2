tacho_bench(symbolize_bench ${CMAKE_CURRENT_LIST_DIR}/symbolize_bench.cc)
if(TARGET symbolize_bench)
  target_link_libraries(symbolize_bench PRIVATE tacho_symbolize)
endif()
