# What every target of ours is compiled with, and nothing that is not ours.
add_library(project_options INTERFACE)
target_compile_features(project_options INTERFACE cxx_std_20)
target_include_directories(project_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(project_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
# Bounds of std::span, vector and string_view are checked in every build type.
target_compile_definitions(project_options INTERFACE _GLIBCXX_ASSERTIONS)
if(TACHO_WERROR)
  target_compile_options(project_options INTERFACE -Werror)
endif()
if(TACHO_SANITIZE)
  target_compile_options(project_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=address,undefined)
endif()
if(TACHO_TSAN)
  target_compile_options(project_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=thread)
endif()
if(TACHO_FUZZ)
  target_compile_options(project_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=address,undefined)
endif()

# tacho_module(NAME source...): the static library of one folder, tacho_NAME.
function(tacho_module name)
  add_library(tacho_${name} STATIC ${ARGN})
  target_link_libraries(tacho_${name} PUBLIC project_options)
endfunction()

# tacho_test(NAME LABEL source...): a GoogleTest program whose every test is a CTest test with that label.
function(tacho_test name label)
  if(NOT TACHO_TESTS)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE project_options GTest::gtest_main)
  # Live tests watch the whole system: what another test does meanwhile would be in their captures.
  set(serial OFF)
  if(label STREQUAL live)
    set(serial ON)
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS ${label} RUN_SERIAL ${serial} DISCOVERY_TIMEOUT 60)
endfunction()

# tacho_fuzz(NAME source...): a libFuzzer target, built with clang and -DTACHO_FUZZ=ON only. All of them stand in one
# folder of their own, where script/fuzz finds them.
function(tacho_fuzz name)
  if(NOT TACHO_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz-targets)
  add_dependencies(fuzz_targets ${name})
  target_link_libraries(${name} PRIVATE project_options)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

# tacho_bench(NAME source...): a Google Benchmark program.
function(tacho_bench name)
  if(NOT TACHO_BENCH)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE project_options benchmark::benchmark_main)
endfunction()
