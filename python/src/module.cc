// The extension module headrace._core: a table of contents, one bind_ call for each layer's file.
#include <nanobind/nanobind.h>

#include "array.h"
#include "bindings.h"
#include "headrace/base/version.h"
#include "process.h"

NB_MODULE(_core, m) {
  namespace python = headrace::python;
  m.doc() = "The C++ core of Headrace. Use the headrace package; names here may change.";
  m.attr("version") = HEADRACE_VERSION;
  python::bind_process(m);
  python::bind_array(m);
  python::bind_order(m);
}
