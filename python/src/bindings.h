// bindings: the parts of headrace._core, one a layer, in the order in which module.cc adds them.
// Thread-safety: called once, while the module is imported.
// Ownership: everything is added to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

void bind_order(nanobind::module_& m);
void bind_codec(nanobind::module_& m);
void bind_dataset(nanobind::module_& m);
void bind_loader(nanobind::module_& m);
void bind_writer(nanobind::module_& m);
void bind_tools(nanobind::module_& m);

}  // namespace headrace::python
