# Compiler settings shared by every target: C++20, warnings, sanitizers, ccache and mold if present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(HEADRACE_CCACHE ccache)
if(HEADRACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HEADRACE_CCACHE})
endif()
find_program(HEADRACE_MOLD mold)
if(HEADRACE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(headrace_settings INTERFACE)
target_compile_options(headrace_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# GCC 12 sees overlapping copies in `"text" + std::string` and uninitialized members in an empty
# std::optional at -O2 and above (its bugs 105329 and 80635); clang and clang-tidy watch over both.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(headrace_settings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(HEADRACE_WERROR)
  target_compile_options(headrace_settings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang counts changes of sign to -Wconversion, where GCC does not.
  target_compile_options(headrace_settings INTERFACE -Wthread-safety -Wno-sign-conversion)
endif()
if(HEADRACE_SANITIZE)
  # The checks that sanitizers insert hide from GCC that a variable is set; its manual warns of
  # this.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(headrace_settings INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_compile_options(headrace_settings INTERFACE -fsanitize=${HEADRACE_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(headrace_settings INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()
if(HEADRACE_FUZZERS)
  # Edge counters in the layers themselves: without them a fuzzer sees nothing but its own file.
  target_compile_options(headrace_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
