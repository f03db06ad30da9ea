#include "errors.h"

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace headrace::python {

void raise(const Status& status) {
  // Looked up each time: errors are rare, and a cached reference would outlive the interpreter.
  const nb::object make = nb::module_::import_("headrace.errors").attr("_from_code");
  const std::string_view code = code_name(status.code());
  const std::string& message = status.message();
  // Paths may hold any bytes; what is not UTF-8 is shown as Python shows such file names.
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "surrogateescape"));
  if (!text.is_valid()) throw nb::python_error();
  const nb::object error = make(nb::str(code.data(), code.size()), text);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace headrace::python
