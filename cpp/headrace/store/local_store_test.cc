#include "headrace/store/local_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/store/blocking.h"
#include "headrace/testing/store_conformance.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;
using headrace::testing::StoreCase;
using headrace::testing::StoreConformance;
using headrace::testing::StoreFixture;

class TempDir {
 public:
  TempDir() {
    std::string name = (fs::temp_directory_path() / "headrace-store-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TempDir() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  const fs::path temp = path.string() + "~";
  std::ofstream(temp, std::ios::binary) << bytes;
  fs::rename(temp, path);
}

class LocalFixture final : public StoreFixture {
 public:
  LocalFixture() : executor_(exec::make_thread_executor(2)) {}
  ObjectStore& store() override { return store_; }
  exec::Executor& executor() override { return *executor_; }
  void place(const std::string& key, const std::string& bytes) override {
    write_file(fs::path(dir_.path()) / key, bytes);
  }
  const std::string& root() const { return dir_.path(); }
  Blocking how() { return {.executor = *executor_}; }

 private:
  TempDir dir_;
  std::unique_ptr<exec::Executor> executor_;
  obs::Metrics metrics_;
  LocalStore store_{{*executor_, metrics_, {}, {}, 0}, dir_.path()};
};

const StoreCase kCases[] = {{"Local", [] { return std::make_unique<LocalFixture>(); }}};
INSTANTIATE_TEST_SUITE_P(Local, StoreConformance, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

std::size_t files_in(const std::string& dir) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) count += entry.is_regular_file();
  return count;
}

TEST(LocalStore, ATruncatedFileIsAnErrorAndNotASignal) {
  LocalFixture local;
  local.place("a", std::string(1 << 20, 'x'));
  const auto info = head(local.store(), local.how(), "a");
  ASSERT_TRUE(local.store().peek({.key = "a", .pin = info->pin, .size = {}}).is_ok());
  fs::resize_file(fs::path(local.root()) / "a", 4096);
  const auto peeked = local.store().peek({.key = "a", .pin = info->pin, .size = {}});
  EXPECT_EQ(peeked.status().code(), Code::kCorrupt) << peeked.status().to_string();
  const auto read = read_range(local.store(), local.how(), {.key = "a"}, {0, 1 << 20});
  EXPECT_EQ(read.status().code(), Code::kCorrupt) << read.status().to_string();
  // Without a pin the file as it is now is mapped anew.
  EXPECT_EQ((*local.store().peek({.key = "a"}))->bytes.size(), 4096U);
}

TEST(LocalStore, ErrorsNameThePathAndWhatToDo) {
  LocalFixture local;
  fs::create_directories(fs::path(local.root()) / "dir");
  const auto of = [&](const std::string& key) {
    return head(local.store(), local.how(), key).status();
  };
  EXPECT_EQ(of("dir").code(), Code::kInvalidArgument);
  EXPECT_NE(of("dir").message().find(local.root() + "/dir"), std::string::npos);
  EXPECT_NE(of("missing").message().find("check the path"), std::string::npos);
  ASSERT_EQ(mkfifo((local.root() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(local.store().peek({.key = "fifo"}).status().code(), Code::kInvalidArgument);
}

TEST(LocalStore, FollowsLinksThatTheDataSetItselfHolds) {
  LocalFixture local;
  TempDir elsewhere;
  write_file(fs::path(elsewhere.path()) / "volume.bin", "linked");
  fs::create_symlink(fs::path(elsewhere.path()) / "volume.bin", fs::path(local.root()) / "l.bin");
  EXPECT_EQ(read_whole(local.store(), local.how(), "l.bin", 100)->bytes, "linked");
}

// The limit of file size stands in for a full disk: both end a write half-way.
TEST(LocalStore, AFullDiskLeavesTheOldObjectAndNoTemporaryFile) {
  LocalFixture local;
  ASSERT_TRUE(put(local.store(), local.how(), "d/a", "old").is_ok());
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = put(local.store(), local.how(), "d/a", std::string(3 << 20, 'n'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(result.status().code(), Code::kExhausted) << result.status().to_string();
  EXPECT_NE(result.status().message().find(local.root() + "/d/a"), std::string::npos);
  EXPECT_EQ(read_whole(local.store(), local.how(), "d/a", 100)->bytes, "old");
  EXPECT_EQ(files_in(local.root()), 1U);
}

TEST(LocalStore, ALostConditionalPutLeavesNoTemporaryFile) {
  LocalFixture local;
  ASSERT_TRUE(put(local.store(), local.how(), "a", "1", true).is_ok());
  EXPECT_EQ(put(local.store(), local.how(), "a", "2", true).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(files_in(local.root()), 1U);
}

TEST(LocalStore, AForkedChildGetsAnErrorAtOnce) {
  LocalFixture local;
  local.place("a", "abc");
  const pid_t child = fork();
  if (child == 0) {
    const Status status = head(local.store(), local.how(), "a").status();
    const bool clear = status.code() == Code::kInvalidArgument &&
                       status.message().find("forked child") != std::string::npos;
    _exit(clear ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0) << result;
}

}  // namespace
}  // namespace headrace::store
