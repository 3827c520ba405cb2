# What `cmake --install` puts beside the programs and tacho/event.h, which their own folders install: examples, license,
# documents, completion of shells, manual pages.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        FILES_MATCHING PATTERN "*.c" PATTERN "*.cc" PATTERN "CMakeLists.txt")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/README.md
              ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Below a folder of the same name, so that the links of README.md hold.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

# zsh's own folder; Debian's packages have vendor-completions.
set(TACHO_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "folder of the completion for zsh")
set(shells ${PROJECT_SOURCE_DIR}/cli/shells)
foreach(program tacho tacho-record tacho-report) # bash and fish load the file that a program's name has
  install(FILES ${shells}/tacho.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
  install(FILES ${shells}/tacho.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${program}.fish)
endforeach()
install(FILES ${shells}/_tacho DESTINATION ${TACHO_ZSH_FOLDER})

# The commands in report/commands.cc with a help text; those without are run only by tacho-record.
set(command_table ${PROJECT_SOURCE_DIR}/report/commands.cc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${command_table})
file(STRINGS ${command_table} commands REGEX "^    {\"[a-z]+\", \"[^\"]")
list(TRANSFORM commands REPLACE "^    {\"([a-z]+)\".*$" "\\1")
if(NOT commands)
  message(FATAL_ERROR "report/commands.cc lists no commands in the form that cmake/install.cmake reads")
endif()
set(MAN_SEE_ALSO "\\fBtacho\\-record\\fR(1), \\fBtacho\\-doctor\\-file\\fR(1)")
foreach(command IN LISTS commands)
  string(APPEND MAN_SEE_ALSO ", \\fBtacho\\-${command}\\fR(1)")
endforeach()

# The reading library: find_package(tacho) gives the target tacho::capture. The others are what it consists of.
set(libraries tacho_capture tacho_report tacho_sandbox tacho_symbolize tacho_unwind tacho_cli tacho_format)
set_target_properties(tacho_capture PROPERTIES EXPORT_NAME capture)
install(FILES ${PROJECT_SOURCE_DIR}/report/include/tacho/capture.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho)
install(TARGETS ${libraries} project_options EXPORT tacho ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/tacho)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tacho)
install(EXPORT tacho NAMESPACE tacho:: FILE tacho-targets.cmake DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tacho-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/tacho-config.cmake ${PROJECT_BINARY_DIR}/tacho-config-version.cmake
        DESTINATION ${package_folder})

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
tacho_man_page(tacho-list tacho-record --list-events)
tacho_man_page(tacho-live tacho-record --live)
tacho_man_page(tacho-top tacho-record --top)
tacho_man_page(tacho-stat tacho-record --count-events)
tacho_man_page(tacho-doctor tacho-record --doctor)
tacho_man_page(tacho-stacks tacho-record --stacks)
foreach(command IN LISTS commands)
  if(command MATCHES "^(doctor|stacks)$") # of a host they are tacho-record's
    tacho_man_page(tacho-${command}-file tacho-report ${command})
  else()
    tacho_man_page(tacho-${command} tacho-report ${command})
  endif()
endforeach()
add_custom_target(man_pages ALL DEPENDS ${pages})
# All that `cmake --install` copies: what script/build makes.
add_custom_target(installed DEPENDS man_pages tacho tacho-record tacho-report tacho-calls ${libraries})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
