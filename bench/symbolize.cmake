tacho_bench(symbolize_bench ${CMAKE_CURRENT_LIST_DIR}/symbolize_bench.cc)
if(TARGET symbolize_bench)
  target_link_libraries(symbolize_bench PRIVATE tacho_symbolize)
  target_compile_options(symbolize_bench PRIVATE -g)  # it looks up its own lines
endif()
tacho_bench(unwind_bench ${CMAKE_CURRENT_LIST_DIR}/unwind_bench.cc)
if(TARGET unwind_bench)
  target_link_libraries(unwind_bench PRIVATE tacho_symbolize)
endif()
