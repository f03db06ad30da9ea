// The version of Headrace, in this one place; CMake and the Python package read it from here.
// Thread-safety: a constant.
// Ownership: nothing.
#pragma once

#define HEADRACE_VERSION "0.1.0"
