#include "headrace/base/status.h"

namespace headrace {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotFound: return "not_found";
    case Code::kDenied: return "denied";
    case Code::kCorrupt: return "corrupt";
    case Code::kUnavailable: return "unavailable";
    case Code::kThrottled: return "throttled";
    case Code::kDeadline: return "deadline";
    case Code::kCancelled: return "cancelled";
    case Code::kExhausted: return "exhausted";
    case Code::kUnimplemented: return "unimplemented";
    case Code::kInternal: return "internal";
  }
  return "unknown";
}

bool code_is_retryable(Code code) { return code == Code::kUnavailable || code == Code::kThrottled; }

Status::Status(Code code, std::string message) {
  if (code == Code::kOk) return;
  rep_ = std::make_shared<const Rep>(Rep{code, std::move(message)});
}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return {};
  std::string text;
  text.reserve(context.size() + 2 + message().size());
  text.append(context).append(": ").append(message());
  return {code(), std::move(text)};
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  return std::string(code_name(code())) + ": " + message();
}

Status invalid_argument(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}
Status not_found(std::string message) { return {Code::kNotFound, std::move(message)}; }
Status denied(std::string message) { return {Code::kDenied, std::move(message)}; }
Status corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
Status unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
Status throttled(std::string message) { return {Code::kThrottled, std::move(message)}; }
Status deadline_exceeded(std::string message) { return {Code::kDeadline, std::move(message)}; }
Status cancelled(std::string message) { return {Code::kCancelled, std::move(message)}; }
Status exhausted(std::string message) { return {Code::kExhausted, std::move(message)}; }
Status unimplemented(std::string message) { return {Code::kUnimplemented, std::move(message)}; }
Status internal_error(std::string message) { return {Code::kInternal, std::move(message)}; }

}  // namespace headrace
