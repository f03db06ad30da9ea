# Lets C++ programs use the library: `cmake --install <build> --component cpp`, then
# find_package(headrace) and link headrace::<layer>. Everything here has the component cpp, so that
# a Python wheel, which installs the component python, carries none of it.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
# Static archives name the third-party libraries they were built with, so users have to find those.
get_property(packages GLOBAL PROPERTY HEADRACE_PACKAGES)
list(REMOVE_DUPLICATES packages)
list(SORT packages)
set(HEADRACE_FIND_DEPENDENCIES "")
foreach(package IN LISTS packages)
  string(APPEND HEADRACE_FIND_DEPENDENCIES "find_dependency(${package})\n")
endforeach()
configure_package_config_file(cmake/headraceConfig.cmake.in
  ${PROJECT_BINARY_DIR}/headraceConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headraceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

install(EXPORT headraceTargets NAMESPACE headrace:: DESTINATION ${config_dir} COMPONENT cpp)
install(FILES ${PROJECT_BINARY_DIR}/headraceConfig.cmake
  ${PROJECT_BINARY_DIR}/headraceConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT cpp)
install(DIRECTORY cpp/headrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp
  FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE
  PATTERN "*_testing.h" EXCLUDE PATTERN "*_test_util.h" EXCLUDE PATTERN "test_*.h" EXCLUDE)
