# headrace_layer(<name> SOURCES ... [TESTS ...] [FUZZERS ...] [BENCHES ...] [DEPS layer ...]
#                [LIBS target ...] [TEST_LIBS target ...])
# One folder = one static library headrace_<name> = one layer, with one test binary
# headrace_<name>_test from TESTS, and one program for each file of FUZZERS and BENCHES (named after
# the file). DEPS are lower layers; LIBS are third-party libraries, used in .cc files only.
function(headrace_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 L "" "" "SOURCES;TESTS;FUZZERS;BENCHES;DEPS;LIBS;TEST_LIBS")
  set(target headrace_${name})
  if(L_SOURCES)
    add_library(${target} STATIC ${L_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:headrace_settings> ${L_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(headrace::${name} ALIAS ${target})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp> $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} ${scope} cxx_std_20)
  foreach(dep IN LISTS L_DEPS)
    target_link_libraries(${target} ${scope} headrace_${dep})
  endforeach()

  if(HEADRACE_TESTS AND L_TESTS)
    find_package(GTest REQUIRED)
    add_executable(${target}_test ${L_TESTS})
    target_link_libraries(${target}_test PRIVATE ${target} headrace_settings
      GTest::gmock GTest::gtest_main ${L_TEST_LIBS} ${L_LIBS})
    target_compile_definitions(${target}_test PRIVATE
      HEADRACE_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
      HEADRACE_CORPUS_DIR="${PROJECT_SOURCE_DIR}/tests/corpus")
    add_test(NAME ${name} COMMAND ${target}_test)
  endif()
  if(HEADRACE_FUZZERS)
    foreach(source IN LISTS L_FUZZERS)
      get_filename_component(program ${source} NAME_WE)
      add_executable(${program} ${source})
      target_compile_options(${program} PRIVATE -fsanitize=fuzzer)
      target_link_options(${program} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${program} PRIVATE ${target} headrace_settings ${L_LIBS})
    endforeach()
  endif()
  if(HEADRACE_BENCHES)
    foreach(source IN LISTS L_BENCHES)
      find_package(benchmark REQUIRED)
      get_filename_component(program ${source} NAME_WE)
      add_executable(${program} ${source})
      target_link_libraries(${program} PRIVATE ${target} headrace_settings
        benchmark::benchmark_main ${L_LIBS})
    endforeach()
  endif()
endfunction()

if(HEADRACE_TESTS)
  enable_testing()
endif()
