# What `cmake --install` puts beside the programs and tacho/event.h, which their own folders install: examples, license,
# manual pages.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        FILES_MATCHING PATTERN "*.bpf.c")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

# A page for each command, made from its --help, so that no page can fall behind.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(man_folder ${PROJECT_BINARY_DIR}/man)
configure_file(${PROJECT_SOURCE_DIR}/docs/man/tacho.1.in ${man_folder}/tacho.1 @ONLY)
set(pages ${man_folder}/tacho.1)

# tacho_man_page(PAGE PROGRAM [COMMAND])
function(tacho_man_page page program)
  set(output ${man_folder}/${page}.1)
  add_custom_command(OUTPUT ${output}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/docs/man/help_to_man.py ${PROJECT_VERSION}
            $<TARGET_FILE:${program}> ${ARGN} > ${output}
    DEPENDS ${program} ${PROJECT_SOURCE_DIR}/docs/man/help_to_man.py VERBATIM)
  set(pages ${pages} ${output} PARENT_SCOPE)
endfunction()

tacho_man_page(tacho-record tacho-record)
foreach(command script report folded hist header evlist convert)
  tacho_man_page(tacho-${command} tacho-report ${command})
endforeach()
add_custom_target(man_pages ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
