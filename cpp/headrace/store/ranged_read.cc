#include "headrace/store/ranged_read.h"

#include <algorithm>
#include <utility>

namespace headrace::store {
namespace {

constexpr ByteRange kFirstByte{0, 1};

}  // namespace

RangedRead::RangedRead(Dialect& dialect, ObjectRef object, ByteRange range, bool may_be_short,
                       MutableBytes into)
    : dialect_(dialect),
      object_(std::move(object)),
      range_(range),
      may_be_short_(may_be_short),
      into_(into),
      name_(dialect.describe(object_.key)),
      size_only_(range.length == 0) {
  info_.pin = object_.pin;
}

void RangedRead::equip(HttpCall& call) {
  call.what =
      size_only_ ? "looking up " + name_ : "reading " + describe_range(range_) + " of " + name_;
  call.build = [self = shared_from_this()] { return self->build(); };
  call.judge = [self = shared_from_this()](HttpResponse& r) { return self->judge(r); };
}

Result<HttpRequest> RangedRead::build() {
  ask_ = {.method = size_only_ && !get_for_size_ ? "HEAD" : "GET", .key = object_.key};
  if (ask_.method == "GET") {
    const ByteRange range = size_only_ ? kFirstByte : remaining();
    ask_.headers.emplace_back(
        "range", "bytes=" + std::to_string(range.offset) + "-" + std::to_string(range.end() - 1));
  }
  if (is_strong_etag(info_.pin)) ask_.headers.emplace_back("if-match", info_.pin);
  HR_ASSIGN(HttpRequest request, dialect_.build(ask_, trail_));
  request.on_head = [self = shared_from_this()](const HttpHead& head) { return self->plan(head); };
  return request;
}

Status RangedRead::changed(const std::string& is) const {
  return corrupt("the object changed since it was first read (it was " + info_.pin +
                 (is.empty() ? "" : ", it is " + is) + "); open the data set again");
}

// Asking again does not make another version, or a longer object, of it.
Status RangedRead::decided(Status status) {
  decided_ = decided_ || !status.is_ok();
  return status;
}

Status RangedRead::note_version(const HttpHead& head, std::uint64_t size) {
  const std::string pin = pin_of(head, size);
  if (!info_.pin.empty() && info_.pin != pin) return changed(pin);
  if (has_info_ && info_.size != size) return changed(std::to_string(size) + " bytes long");
  if (object_.size && *object_.size != size) {
    return corrupt("the object has " + std::to_string(size) + " bytes where " +
                   std::to_string(*object_.size) + " were expected; it was replaced or truncated");
  }
  info_ = {size, pin};
  has_info_ = true;
  return Status::ok();
}

Status RangedRead::ends_early(std::uint64_t size) const {
  return corrupt("the object has only " + std::to_string(size) +
                 " bytes; it is truncated, or its index is of another version");
}

Result<BodyPlan> RangedRead::plan(const HttpHead& head) {
  if (head.status != 200 && head.status != 206) return BodyPlan{};
  if (size_only_ && !get_for_size_) return BodyPlan{};
  if (const std::string* encoding = head.find("content-encoding");
      encoding && *encoding != "identity" && !encoding->empty() && *encoding != "aws-chunked") {
    // Ranges of a gzip-stored object are ranges of its stored bytes, and those are served as they
    // are; only a server that encodes on the way would answer 200 or with other sizes.
    if (head.status != 206) {
      return unimplemented("the server encodes the object on its way (" + *encoding +
                           "); switch that off for data sets");
    }
  }
  return head.status == 206 ? plan_part(head) : plan_whole(head);
}

Result<BodyPlan> RangedRead::plan_part(const HttpHead& head) {
  const std::string* field = head.find("content-range");
  if (!field) return corrupt("the server answers with a part but does not say which");
  HR_ASSIGN(const ContentRange got, parse_content_range(*field));
  const ByteRange wanted = size_only_ ? kFirstByte : remaining();
  if (!got.first_last || !got.size) {
    return corrupt("the server does not say which part, or the size, of the object it sends ('" +
                   *field + "')");
  }
  const auto [first, last] = *got.first_last;
  const std::uint64_t end = std::min(wanted.end(), *got.size);
  if (first != wanted.offset || last + 1 != end) {
    return corrupt("the server sent '" + *field + "' where " + describe_range(wanted) +
                   " were asked for");
  }
  const auto length = content_length(head);
  if (length && *length != last + 1 - first) {
    return corrupt("the server announces " + std::to_string(*length) + " bytes for '" + *field +
                   "'");
  }
  HR_TRY(decided(note_version(head, *got.size)));
  if (size_only_) return BodyPlan{.into = MutableBytes(&probe_, 1)};
  if (end < wanted.end()) {
    if (!may_be_short_) return decided(ends_early(*got.size));
    range_.length = *got.size - range_.offset;
  }
  return BodyPlan{.into = into_.subspan(delivered_, range_.length - delivered_)};
}

Result<BodyPlan> RangedRead::plan_whole(const HttpHead& head) {
  const auto size = content_length(head);
  if (!size) {
    return unimplemented("the server serves no ranges and sends no length of the object");
  }
  if (!size_only_ && range_.offset > 0) {
    return unimplemented(
        "the server ignores ranges and sends the whole object from its first byte; serve the data "
        "set from a server that supports ranges");
  }
  HR_TRY(decided(note_version(head, *size)));
  if (size_only_) {
    return *size == 0 ? BodyPlan{.into = MutableBytes()}
                      : BodyPlan{.into = MutableBytes(&probe_, 1), .cut = true};
  }
  if (*size < range_.length) {
    if (!may_be_short_) return decided(ends_early(*size));
    range_.length = *size;
  }
  // The body starts at its first byte again, whatever an earlier attempt delivered.
  delivered_ = 0;
  return BodyPlan{.into = into_.first(range_.length), .cut = *size > range_.length};
}

Verdict RangedRead::judge_size_only(const HttpResponse& response) {
  if (response.head.status == 416 && get_for_size_) return judge_unsatisfiable(response);
  if (dialect_.may_get_instead_of_head(response.head.status) && !get_for_size_) {
    get_for_size_ = true;
    return {.again = true};
  }
  if (!response.head.is_success()) return dialect_.refuse(ask_, response, trail_);
  if (get_for_size_) return {};
  const auto size = content_length(response.head);
  if (!size) {
    // Some servers leave the length out of the answer to HEAD; a part always carries it.
    get_for_size_ = true;
    return {.again = true};
  }
  if (const Status status = note_version(response.head, *size); !status.is_ok()) {
    return {.status = status, .last = true};
  }
  if (range_.length == 0) return {};
  if (!may_be_short_) return {.status = ends_early(*size), .last = true};
  if (range_.offset + delivered_ < *size) {
    return {.status = corrupt("the server refuses " + describe_range(remaining(), size)),
            .last = true};
  }
  return {};
}

Verdict RangedRead::judge_unsatisfiable(const HttpResponse& response) {
  const std::string* field = response.head.find("content-range");
  const auto got = field ? parse_content_range(*field) : Result<ContentRange>(corrupt("none"));
  if (!got.is_ok() || !got->size) {
    if (get_for_size_) return {.status = corrupt("the server does not tell the object's size")};
    size_only_ = true;
    return {.again = true};
  }
  const std::uint64_t start = size_only_ ? 0 : range_.offset + delivered_;
  if (start < *got->size) {
    return {.status = corrupt("the server refuses " + describe_range(remaining(), got->size))};
  }
  // An answer about the range says nothing about the version unless it carries the fields of one.
  if (response.head.find("etag")) {
    if (Status status = note_version(response.head, *got->size); !status.is_ok()) {
      return {.status = std::move(status), .last = true};
    }
  } else if (may_be_short_ || size_only_) {
    if (get_for_size_) {
      // An empty object behind a server that forbids HEAD: only its size is known of it.
      info_ = {*got->size,
               object_.pin.empty() ? "size " + std::to_string(*got->size) : object_.pin};
      return {};
    }
    size_only_ = true;
    return {.again = true};
  }
  if (!may_be_short_ && !size_only_) return {.status = ends_early(*got->size), .last = true};
  return {};
}

Verdict RangedRead::judge(HttpResponse& response) {
  const bool moved = !size_only_ && response.delivered > 0;
  if (!size_only_) delivered_ += response.delivered;
  if (!response.transport.is_ok()) {
    return {.status = response.transport, .last = decided_, .moved = moved};
  }
  if (response.head.status == 412) return {.status = changed(""), .last = true};
  if (size_only_) return judge_size_only(response);
  if (response.head.status == 416) return judge_unsatisfiable(response);
  if (response.head.status == 200 || response.head.status == 206) return {};
  if (response.head.is_success()) {
    return {.status = corrupt("the server answers a read with status " +
                              std::to_string(response.head.status))};
  }
  return dialect_.refuse(ask_, response, trail_);
}

}  // namespace headrace::store
