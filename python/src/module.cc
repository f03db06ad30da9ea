// The extension module headrace._core: a table of contents, one bind_ call for each layer's file.
#include <nanobind/nanobind.h>

#include "array.h"
#include "bindings.h"
#include "headrace/base/version.h"
#include "process.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  namespace python = headrace::python;
  // What users keep until the interpreter ends is no leak, and a library prints nothing.
  nb::set_leak_warnings(false);
  m.doc() = "The C++ core of Headrace. Use the headrace package; names here may change.";
  m.attr("version") = HEADRACE_VERSION;
  python::bind_process(m);
  python::bind_array(m);
  python::bind_order(m);
  python::bind_codec(m);
  python::bind_dataset(m);
  python::bind_loader(m);
  python::bind_writer(m);
  python::bind_tools(m);
}
