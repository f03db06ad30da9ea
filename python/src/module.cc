// The extension module headrace._core: a table of contents, one init_ call for each layer's file.
#include <nanobind/nanobind.h>

#include "headrace/base/version.h"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of Headrace. Use the headrace package; names here may change.";
  m.attr("version") = HEADRACE_VERSION;
}
