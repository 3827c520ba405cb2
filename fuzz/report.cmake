# What the report makes of foreign bytes: payloads by schema, tracepoint formats, names, folded lines, and whole captures
# through the views.
foreach(target payload tracepoint names views)
  tacho_fuzz(fuzz_${target} ${CMAKE_CURRENT_LIST_DIR}/fuzz_${target}.cc)
  if(TARGET fuzz_${target})
    target_link_libraries(fuzz_${target} PRIVATE tacho_report)
  endif()
endforeach()
