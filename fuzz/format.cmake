# Parsers of format: whole captures (header, events, sections, records, samples), each on its own where the whole would
# seldom reach it.
foreach(target capture features records inflate tracing_data payload_schema attachments build_id)
  tacho_fuzz(fuzz_${target} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_${target}.cc)
  if(TACHO_FUZZ)
    target_link_libraries(fuzz_${target} PRIVATE tacho_format)
  endif()
endforeach()
