// RangedRead: reads one range of one object in as many attempts as it takes, never a wrong byte.
// Thread-safety: its functions are called one after the other by one HttpCall.
// Ownership: shared by the call's functions; the destination outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/store/remote_store.h"

namespace headrace::store {

// The rules: an answer counts only when its status, Content-Range, length and version are what was
// asked for; a body that ends early is continued from the next byte with the version pinned; a
// whole object (200) in place of a range is taken only when the range starts at its first byte.
class RangedRead : public std::enable_shared_from_this<RangedRead> {
 public:
  // An empty range asks only how large the object is and which version.
  RangedRead(Dialect& dialect, ObjectRef object, ByteRange range, bool may_be_short,
             MutableBytes into);

  // Fills build, judge and what of a call that does the reading.
  void equip(HttpCall& call);

  // After success:
  std::uint64_t delivered() const { return delivered_; }
  const ObjectInfo& info() const { return info_; }

 private:
  Result<HttpRequest> build();
  Result<BodyPlan> plan(const HttpHead& head);
  Result<BodyPlan> plan_part(const HttpHead& head);
  Result<BodyPlan> plan_whole(const HttpHead& head);
  Verdict judge(HttpResponse& response);
  Verdict judge_size_only(const HttpResponse& response);
  Verdict judge_unsatisfiable(const HttpResponse& response);
  // Notes what the object is, or says that it is another one than before.
  Status note_version(const HttpHead& head, std::uint64_t size);
  Status decided(Status status);
  Status ends_early(std::uint64_t size) const;
  Status changed(const std::string& is) const;
  ByteRange remaining() const { return {range_.offset + delivered_, range_.length - delivered_}; }

  Dialect& dialect_;
  const ObjectRef object_;
  ByteRange range_;  // shortened once the object's end is known to lie in it
  const bool may_be_short_;
  const MutableBytes into_;
  const std::string name_;
  std::uint64_t delivered_ = 0;
  bool size_only_;  // asks with HEAD: nothing is to be read, or 416 did not tell the size
  bool get_for_size_ = false;  // HEAD is forbidden: asks for the first byte instead
  bool has_info_ = false;
  bool decided_ = false;  // the answer's head has shown that another attempt is in vain
  ObjectInfo info_;
  Ask ask_;
  Trail trail_;
  std::byte probe_{};
};

}  // namespace headrace::store
