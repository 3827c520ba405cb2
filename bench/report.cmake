# What reading costs: views of a capture, sample by sample.
tacho_bench(report_bench ${CMAKE_CURRENT_LIST_DIR}/report_bench.cc)
if(TACHO_BENCH)
  target_link_libraries(report_bench PRIVATE tacho_report)
endif()
