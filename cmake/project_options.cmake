# Compiler results are taken from ccache when it is installed. Paths count from the source folder, so that a clone
# elsewhere finds them too. The sloppiness is what ccache requires for precompiled headers.
find_program(TACHO_CCACHE ccache)
if(TACHO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${TACHO_CCACHE})
endif()

# Compile options of the project's own targets. Of all of them the installed libraries keep nothing but C++20.
add_library(project_options INTERFACE)
target_compile_features(project_options INTERFACE cxx_std_20)
target_include_directories(project_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
# GCC 12 warns of texts that are added up, wherever it inlines that (its bug 105651).
# Members that a designated initializer leaves out are left out on purpose: GCC 12 warns of them too.
target_compile_options(project_options INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wno-missing-field-initializers>"
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>>)
# Bounds of std::span, vector and string_view are checked in every build type.
target_compile_definitions(project_options INTERFACE $<BUILD_INTERFACE:_GLIBCXX_ASSERTIONS>)
if(CMAKE_UNITY_BUILD)
  # A unit includes its sources. So GCC takes the types of a source's anonymous namespace for those of a header, and compilers
  # see a local name that hides another source's.
  target_compile_options(project_options INTERFACE
    $<BUILD_INTERFACE:-Wno-shadow> $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>>)
endif()
if(TACHO_STATIC)
  target_link_options(project_options INTERFACE -static)
  target_compile_definitions(project_options INTERFACE TACHO_STATIC)
endif()
if(TACHO_WERROR)
  target_compile_options(project_options INTERFACE -Werror)
endif()
if(TACHO_SANITIZE)
  # AddressSanitizer finds what object-size would; the checks of object-size and vptr take a tenth of the build's time.
  target_compile_options(project_options INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr,object-size
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  # RapidJSON's stack adds to a null pointer, which clang's check ends the program for. GCC defines the word itself.
  target_compile_options(project_options INTERFACE
                         "$<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=pointer-overflow;-D__SANITIZE_ADDRESS__=1>")
  target_link_options(project_options INTERFACE -fsanitize=address,undefined)
endif()
if(TACHO_TSAN)
  target_compile_options(project_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:Clang>:-D__SANITIZE_THREAD__=1>)
  target_link_options(project_options INTERFACE -fsanitize=thread)
endif()
if(TACHO_FUZZ)
  target_compile_options(project_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=address,undefined)
endif()

# tacho_module(NAME source...): the static library tacho_NAME. With -DCMAKE_UNITY_BUILD=ON up to 20 sources of a room are
# one translation unit, which halves the time of a whole build, and names in anonymous namespaces must differ within a
# room. Compiled alone: what includes curses.h, as that defines macros, or capstone.h, as capstone 5 defines names that linux/bpf.h defines too;
# and generated sources.
function(tacho_module name)
  add_library(tacho_${name} STATIC ${ARGN})
  target_link_libraries(tacho_${name} PUBLIC project_options)
  # A sanitizer's build takes half the time without optimization; what reads captures is too slow then.
  if(TACHO_SANITIZE AND name MATCHES "^(bpf|cli|record|sandbox)$")
    target_compile_options(tacho_${name} PRIVATE -O0)
  endif()
  set_target_properties(tacho_${name} PROPERTIES UNITY_BUILD_MODE GROUP)  # a source without a group is compiled alone
  set(sources ${ARGN})
  list(FILTER sources EXCLUDE REGEX "/tui/screen\\.cc$|decode/instructions\\.cc$|^/")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH room)
    string(REPLACE "/" "_" room "_${room}")
    list(APPEND room${room} ${source})
    list(LENGTH room${room} count)
    math(EXPR part "(${count} - 1) / 20")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${part}${room}")
    # Views are not optimized under the sanitizers, either. COMPILE_OPTIONS of a source would take it out of its unit, so
    # they are set for the unit, the file that CMake generates.
    if((TACHO_SANITIZE OR TACHO_TSAN) AND room MATCHES "^_views_")
      set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/tacho_${name}.dir/Unity/unity_${part}${room}_cxx.cxx
                                  PROPERTIES COMPILE_OPTIONS -O0)
    endif()
  endforeach()
endfunction()

# What tests with the label unit need to be built; the other labels stand on the programs.
if(TACHO_TESTS)
  add_custom_target(unit_tests)
  # Tests are compiled without optimization, so most of their time goes into headers: these are compiled once for all.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "")
  add_library(test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
  target_link_libraries(test_headers PRIVATE project_options GTest::gtest_main)
  target_compile_options(test_headers PRIVATE -O0)
  target_precompile_headers(test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <functional> <map> <optional> <span>
                                                 <string> <unordered_map> <vector>)
endif()

# tacho_test(NAME LABEL source... [PARTS PART FILTER...]): a GoogleTest program and one CTest test, as starting a program
# takes longer than most test cases. With PARTS the tests that match a filter are a CTest test of their own, PART, which
# runs beside the others; NAME has those that match no filter. A live test records with tacho: tests/CMakeLists.txt.
# Sources of one program share translation units, so names in their anonymous namespaces must differ.
function(tacho_test name label)
  if(NOT TACHO_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 with "" "" "PARTS")
  add_executable(${name} ${with_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 10)
  target_link_libraries(${name} PRIVATE project_options GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)  # the code under test is in the libraries; a third less time to compile
  target_precompile_headers(${name} REUSE_FROM test_headers)
  set(tests ${name})
  set(others "")
  while(with_PARTS)
    list(POP_FRONT with_PARTS part filter)
    add_test(NAME ${part} COMMAND ${name} --gtest_brief=1 --gtest_filter=${filter})
    list(APPEND tests ${part})
    string(APPEND others ":${filter}")
  endwhile()
  string(REGEX REPLACE "^:" "--gtest_filter=-" others "${others}")
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 ${others})
  set_tests_properties(${tests} PROPERTIES LABELS ${label} TIMEOUT 900)
  if(label STREQUAL live)
    set_tests_properties(${tests} PROPERTIES RESOURCE_GROUPS recorders:1 COST 30 DEPENDS "${TACHO_PERF_TESTS}")
  elseif(label STREQUAL unit)
    set_tests_properties(${tests} PROPERTIES LABELS "unit;sanitize" COST 50)  # the longest ones under the sanitizers
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# tacho_fuzz(LIBRARY TARGET...): fuzz/TARGET.cc feed bytes to LIBRARY. With -DTACHO_FUZZ=ON each is a libFuzzer program;
# all stand in one folder of their own, where script/fuzz finds them. Otherwise they are parts of the test fuzz_seeds.
function(tacho_fuzz library)
  foreach(target ${ARGN})
    set(source ${PROJECT_SOURCE_DIR}/fuzz/${target}.cc)
    if(TACHO_FUZZ)
      add_executable(${target} ${source})
      set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz-targets)
      add_dependencies(fuzz_targets ${target})
      target_link_libraries(${target} PRIVATE project_options ${library})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
      target_sources(fuzz_seeds PRIVATE ${source})
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "LLVMFuzzerTestOneInput=${target}")
      target_link_libraries(fuzz_seeds PRIVATE ${library})
      set_property(GLOBAL APPEND PROPERTY TACHO_FUZZ_TARGETS ${target})
    endif()
  endforeach()
endfunction()

# tacho_bench(NAME source...): a Google Benchmark program.
function(tacho_bench name)
  if(NOT TACHO_BENCH)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE project_options benchmark::benchmark_main)
endfunction()
