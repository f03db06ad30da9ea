// Status and Result<T>: how every layer reports failure; nothing in the core throws across a layer.
// Thread-safety: values; distinct objects may be used from distinct threads.
// Ownership: a Status owns its message; ok() costs one null pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "headrace/base/check.h"

namespace headrace {

// A code exists where callers act differently on it. Retryable is a property of the code.
enum class Code : std::uint8_t {
  kOk = 0,
  kInvalidArgument,  // the caller asked for something that cannot be meant
  kNotFound,         // the object is not there
  kDenied,           // credentials or permissions refuse it
  kCorrupt,          // bytes are there and wrong
  kUnavailable,      // may work when tried again
  kThrottled,        // may work when tried again later and less often
  kDeadline,         // time ran out
  kCancelled,        // somebody asked to stop
  kExhausted,        // a local limit: memory budget, disk, queue
  kUnimplemented,    // meaningful, and not built here
  kInternal,         // our own fault
};

// The stable, lower-case name of a code ("not_found"), the same in C++, Python and JSON.
std::string_view code_name(Code code);
bool code_is_retryable(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  static Status ok() { return {}; }

  bool is_ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  bool is_retryable() const { return code_is_retryable(code()); }
  const std::string& message() const;

  // Puts one more circumstance in front of the message ("shard 3: ..."); ok stays ok.
  Status with_context(std::string_view context) const;
  // "corrupt: shard 3: ..." or "ok".
  std::string to_string() const;

  friend bool operator==(const Status& a, const Status& b) {
    return a.code() == b.code() && a.message() == b.message();
  }

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : rep_(std::in_place_index<1>, std::move(value)) {}        // NOLINT(*-explicit-*)
  Result(Status status) : rep_(std::in_place_index<0>, std::move(status)) {  // NOLINT(*-explicit-*)
    HR_CHECK(!std::get<0>(rep_).is_ok(), "a Result made from an ok Status has no value");
  }

  bool is_ok() const { return rep_.index() == 1; }
  Status status() const { return is_ok() ? Status::ok() : std::get<0>(rep_); }

  // The value; calling these on a failure is a bug of the caller and aborts.
  T& value() & {
    check_ok();
    return std::get<1>(rep_);
  }
  const T& value() const& {
    check_ok();
    return std::get<1>(rep_);
  }
  // By value, so that a loop over what a temporary Result holds does not dangle.
  T value() && {
    check_ok();
    return std::get<1>(std::move(rep_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check_ok() const {
    HR_CHECK(is_ok(), "value() of a failed Result: " + std::get<0>(rep_).to_string());
  }
  std::variant<Status, T> rep_;
};

Status invalid_argument(std::string message);
Status not_found(std::string message);
Status denied(std::string message);
Status corrupt(std::string message);
Status unavailable(std::string message);
Status throttled(std::string message);
Status deadline_exceeded(std::string message);
Status cancelled(std::string message);
Status exhausted(std::string message);
Status unimplemented(std::string message);
Status internal_error(std::string message);

}  // namespace headrace

// Returns from the enclosing function when `expr` (a Status) failed.
#define HR_TRY(expr)                                                         \
  do {                                                                       \
    if (::headrace::Status hr_try_status_ = (expr); !hr_try_status_.is_ok()) \
      return hr_try_status_;                                                 \
  } while (false)

#define HR_CONCAT_INNER_(a, b) a##b
#define HR_CONCAT_(a, b) HR_CONCAT_INNER_(a, b)
// HR_ASSIGN(auto x, make_x()): declares or assigns from a Result, or returns its Status.
#define HR_ASSIGN(decl, expr) HR_ASSIGN_INNER_(HR_CONCAT_(hr_result_, __LINE__), decl, expr)
#define HR_ASSIGN_INNER_(tmp, decl, expr) \
  auto tmp = (expr);                      \
  if (!tmp.is_ok()) return tmp.status();  \
  decl = std::move(tmp).value()
