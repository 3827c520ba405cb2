# What the recorder reads from others: the command line's events, and the texts of /proc.
foreach(target event_spec proc_texts)
  tacho_fuzz(fuzz_${target} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_${target}.cc)
  if(TACHO_FUZZ)
    target_link_libraries(fuzz_${target} PRIVATE tacho_record)
  endif()
endforeach()
