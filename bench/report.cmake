# What reading costs: views of a capture, sample by sample.
tacho_bench(report_bench ${CMAKE_CURRENT_LIST_DIR}/report_bench.cc)
# What drawing call graphs costs: trees of chains, and their text.
tacho_bench(report_graph ${CMAKE_CURRENT_LIST_DIR}/report_graph.cc)
# What the terminal view costs: a million rows.
tacho_bench(tui_bench ${CMAKE_CURRENT_LIST_DIR}/tui_bench.cc)
# What a verdict costs: tests of many functions.
tacho_bench(compare_bench ${CMAKE_CURRENT_LIST_DIR}/compare_bench.cc)
if(TACHO_BENCH)
  target_link_libraries(compare_bench PRIVATE tacho_report)
  target_link_libraries(tui_bench PRIVATE tacho_report)
  target_link_libraries(report_graph PRIVATE tacho_report)
  target_link_libraries(report_bench PRIVATE tacho_report)
endif()
