// Store conformance: one suite that every object store passes. A store takes part by instantiating
// it with a fixture that says how objects get into the store and what it cannot do.
// Thread-safety: one test at a time.
// Ownership: each test owns its fixture.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "headrace/exec/executor.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/object_store.h"
#include "headrace/store/open_store.h"

namespace headrace::testing {

class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual store::ObjectStore& store() = 0;
  virtual exec::Executor& executor() = 0;
  // Puts or replaces an object behind the back of the store.
  virtual void place(const std::string& key, const std::string& bytes) = 0;

  // Declared differences.
  virtual bool can_write() const { return true; }
  virtual bool can_peek() const { return true; }
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<StoreFixture>()> make;
};

// Prints nothing but its name, so that test lists are the same in every run.
inline void PrintTo(const StoreCase& c, std::ostream* out) { *out << c.name; }

class StoreConformance : public ::testing::TestWithParam<StoreCase> {
 protected:
  void SetUp() override { fixture_ = GetParam().make(); }

  store::ObjectStore& store() { return fixture_->store(); }
  exec::Executor& executor() { return fixture_->executor(); }

  // Submits and waits; whoever waits too long fails instead of hanging.
  Result<store::ReadReply> read(store::ReadRequest request);
  // A read of `ranges` into a lease of exactly their size.
  store::ReadRequest request(const std::string& key, std::vector<ByteRange> ranges);

  std::unique_ptr<StoreFixture> fixture_;
};

}  // namespace headrace::testing
