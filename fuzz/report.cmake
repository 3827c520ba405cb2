# What the report makes of foreign bytes: payloads by schema, tracepoint formats, their print formats compiled, names,
# folded lines, and whole captures through the views and through convert.
foreach(target payload tracepoint print_format names views two_threads convert)
  tacho_fuzz(fuzz_${target} ${CMAKE_CURRENT_LIST_DIR}/fuzz_${target}.cc)
  if(TARGET fuzz_${target})
    target_link_libraries(fuzz_${target} PRIVATE tacho_report)
  endif()
endforeach()
