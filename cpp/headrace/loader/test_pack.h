// What the tests of packing, indexing and verifying share: a store to write to, and data sets.
// Thread-safety: one test at a time.
// Ownership: a PackBench owns its executor and folder, which is removed at the end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headrace/loader/dataset_writer.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/blocking.h"
#include "headrace/store/memory_store.h"

namespace headrace::loader {

class PackBench {
 public:
  explicit PackBench(std::unique_ptr<exec::Executor> executor = exec::make_thread_executor(2))
      : executor_(std::move(executor)) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("headrace-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PackBench() { std::filesystem::remove_all(folder_); }

  exec::Executor& executor() { return *executor_; }
  store::StoreDeps deps() { return {*executor_, metrics_, {}, {}, 0}; }
  store::Blocking how() { return {*executor_, std::chrono::seconds(30)}; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Names in a folder, sorted, joined by spaces.
  std::string listing(const std::string& name = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / name)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    std::string out;
    for (const std::string& one : names) out += (out.empty() ? "" : " ") + one;
    return out;
  }

 private:
  std::unique_ptr<exec::Executor> executor_;
  obs::Metrics metrics_;
  std::filesystem::path folder_;
};

inline DatasetWriterOptions pack_options(const std::string& format) {
  DatasetWriterOptions options;
  options.format = format;
  options.writer.columns = {{"txt", "str"}, {"bin", "bytes"}};
  options.writer.size_limit = 10000;
  return options;
}

inline format::FieldValue pack_value(std::string_view bytes) {
  format::FieldValue value;
  value.is_null = false;
  value.bytes = as_bytes(bytes);
  return value;
}

// Writes `samples` samples; sample i has the text "text i".
inline Status write_samples(DatasetWriter& writer, std::size_t samples) {
  const std::string bin(500, 'b');
  for (std::size_t i = 0; i < samples; ++i) {
    const std::string text = "text " + std::to_string(i);
    const format::FieldValue values[] = {pack_value(bin), pack_value(text)};
    HR_TRY(writer.write("", values));
  }
  return Status::ok();
}

}  // namespace headrace::loader
