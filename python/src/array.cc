#include "array.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>

#include "dlpack.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

constexpr const char* kLegacyName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

// A managed tensor with what it points to; `Managed` is one of the two structures of DLPack.
template <typename Managed>
struct Exported {
  Managed managed{};
  KeepAlive owner;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  explicit Exported(const Array& array) : owner(array.owner), shape(array.shape) {
    strides.reserve(shape.size());
    for (const std::int64_t bytes : array.strides_bytes) {
      strides.push_back(bytes / array.item_bytes());
    }
    managed.tensor.data = array.data;
    managed.tensor.device = {dlpack::kCpu, 0};
    managed.tensor.ndim = static_cast<std::int32_t>(shape.size());
    managed.tensor.dtype = {array.type.code, array.type.bits, 1};
    managed.tensor.shape = shape.data();
    managed.tensor.strides = strides.data();
    managed.manager = this;
    managed.deleter = [](Managed* self) { delete static_cast<Exported*>(self->manager); };
  }
};

// A consumer renames the capsule it has taken the tensor from; otherwise the tensor is still ours.
template <typename Managed>
void drop_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

nb::object to_dlpack(const Array& array, const nb::object&,
                     std::optional<std::pair<int, int>> max_version,
                     std::optional<std::pair<int, int>> dl_device, std::optional<bool> copy) {
  if (dl_device && (dl_device->first != dlpack::kCpu || dl_device->second != 0)) {
    throw nb::buffer_error("this memory is on the CPU; move the array after taking it over");
  }
  if (copy.value_or(false)) {
    throw nb::buffer_error("Headrace hands its memory over; copy the array after taking it");
  }
  PyObject* capsule = nullptr;
  if (max_version && max_version->first >= 1) {
    auto exported = std::make_unique<Exported<dlpack::ManagedTensorVersioned>>(array);
    exported->managed.version = {dlpack::kVersionMajor, dlpack::kVersionMinor};
    exported->managed.flags = 0;
    capsule = PyCapsule_New(&exported->managed, kVersionedName, [](PyObject* self) {
      drop_unused<dlpack::ManagedTensorVersioned>(self, kVersionedName);
    });
    if (capsule) exported.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  } else {
    auto exported = std::make_unique<Exported<dlpack::ManagedTensor>>(array);
    capsule = PyCapsule_New(&exported->managed, kLegacyName, [](PyObject* self) {
      drop_unused<dlpack::ManagedTensor>(self, kLegacyName);
    });
    if (capsule) exported.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  }
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Array& array = *nb::inst_ptr<Array>(nb::handle(self));
  view->obj = Py_NewRef(self);
  view->buf = array.data;
  view->len = array.size_bytes();
  view->readonly = 0;
  view->itemsize = array.item_bytes();
  view->ndim = static_cast<int>(array.shape.size());
  view->format = nullptr;
  view->shape = nullptr;
  view->strides = nullptr;
  view->suboffsets = nullptr;
  if (flags & PyBUF_FORMAT) {
    // Two bytes a letter: the letter itself and the end of the string.
    static char letters[128][2];
    char* letter = letters[static_cast<unsigned char>(array.type.letter)];
    letter[0] = array.type.letter;
    view->format = letter;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  if (flags & PyBUF_ND) {
    view->shape = reinterpret_cast<Py_ssize_t*>(const_cast<std::int64_t*>(array.shape.data()));
  }
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) {
    view->strides =
        reinterpret_cast<Py_ssize_t*>(const_cast<std::int64_t*>(array.strides_bytes.data()));
  }
  view->internal = nullptr;
  return 0;
}

PyType_Slot g_array_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {0, nullptr},
};

}  // namespace

ElementType element_type(format::DType dtype) {
  using format::DType;
  switch (dtype) {
    case DType::kU8: return {dlpack::kUInt, 8, 'B'};
    case DType::kI8: return {dlpack::kInt, 8, 'b'};
    case DType::kU16: return {dlpack::kUInt, 16, 'H'};
    case DType::kI16: return {dlpack::kInt, 16, 'h'};
    case DType::kF16: return {dlpack::kFloat, 16, 'e'};
    case DType::kU32: return {dlpack::kUInt, 32, 'I'};
    case DType::kI32: return {dlpack::kInt, 32, 'i'};
    case DType::kF32: return {dlpack::kFloat, 32, 'f'};
    case DType::kU64: return {dlpack::kUInt, 64, 'Q'};
    case DType::kI64: return {dlpack::kInt, 64, 'q'};
    case DType::kF64: return {dlpack::kFloat, 64, 'd'};
  }
  return {dlpack::kUInt, 8, 'B'};
}

Array::Array(KeepAlive keep, MutableBytes bytes, ElementType element,
             std::vector<std::int64_t> dimensions)
    : owner(std::move(keep)), data(bytes.data()), type(element), shape(std::move(dimensions)) {
  // Consumers want an address even where there is nothing to read.
  alignas(64) static std::byte empty[64];
  if (!data) data = empty;
  strides_bytes.resize(shape.size());
  std::int64_t stride = item_bytes();
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides_bytes[d] = stride;
    stride *= shape[d];
  }
  HR_CHECK(static_cast<std::uint64_t>(size_bytes()) <= bytes.size(),
           "an array is larger than the memory it views");
}

std::int64_t Array::size_bytes() const {
  std::int64_t size = item_bytes();
  for (const std::int64_t n : shape) size *= n;
  return size;
}

void bind_array(nb::module_& m) {
  nb::class_<Array>(m, "Array", nb::type_slots(g_array_slots),
                    "Memory of the core: numpy.asarray() and from_dlpack() take it without a copy.")
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Array&) { return std::pair<int, int>(dlpack::kCpu, 0); })
      .def_prop_ro(
          "shape",
          [](const Array& array) {
            nb::list shape;
            for (const std::int64_t n : array.shape) shape.append(n);
            return nb::tuple(shape);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"));
}

}  // namespace headrace::python
