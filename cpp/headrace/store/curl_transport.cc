// The reactor: one thread, one libcurl multi handle driven by socket_action, one epoll.
//
// Requests and cancellations arrive in a queue under a mutex and an eventfd. Everything else
// belongs to the reactor thread. A request waits for a free connection, then runs as a
// CurlTransfer; it ends when libcurl says so, when its timer is due, when it is cancelled, or when
// the transport closes.
// curl_multi_perform and _poll would cost time proportional to the handles on every wake-up.
#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/store/curl_transfer.h"
#include "headrace/store/http_transport.h"

namespace headrace::store {
namespace {

// Connections that are kept for reuse; fixed, because libcurl's default follows the current number
// of handles and throws warm connections away in every lull.
constexpr long kIdleConnections = 2;

Status init_curl() {
  static std::once_flag once;
  static CURLcode code = CURLE_OK;
  std::call_once(once, [] { code = curl_global_init(CURL_GLOBAL_DEFAULT); });
  if (code == CURLE_OK) return Status::ok();
  return internal_error(std::string("libcurl does not start: ") + curl_easy_strerror(code));
}

class CurlTransport final : public HttpTransport {
 public:
  CurlTransport(TransportOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock), pid_(getpid()) {}
  ~CurlTransport() override;

  Status open();
  std::uint64_t submit(HttpRequest request) override HR_EXCLUDES(mutex_);
  void cancel(std::uint64_t id) override HR_EXCLUDES(mutex_);
  void close() override HR_EXCLUDES(mutex_);

 private:
  // Demand first, then the nearest deadline, then arrival.
  using WaitKey = std::tuple<Priority, TimePoint, std::uint64_t>;
  using Transfers = std::unordered_map<std::uint64_t, std::unique_ptr<CurlTransfer>>;

  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  void run();
  void wake();
  bool take_orders() HR_EXCLUDES(mutex_);
  void start_waiting();
  void start(std::unique_ptr<CurlTransfer> transfer);
  void stop_one(std::uint64_t id, const Status& why);
  void stop_all(const Status& why);
  void reap();
  void run_timers();
  void set_timer(std::uint64_t id, TimePoint when);
  void clear_timer(std::uint64_t id);
  int sleep_ms() const;
  void release(CURL* easy, bool is_clean);

  const TransportOptions options_;
  const Clock& clock_;
  const pid_t pid_;
  int epoll_ = -1;
  int wakeup_ = -1;
  CURLM* multi_ = nullptr;
  std::thread thread_;

  Mutex mutex_;
  std::vector<std::unique_ptr<CurlTransfer>> submitted_ HR_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> cancelled_ HR_GUARDED_BY(mutex_);
  bool closing_ HR_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint64_t> next_id_{1};

  // Of the reactor thread alone:
  std::map<WaitKey, std::unique_ptr<CurlTransfer>> waiting_;
  std::unordered_map<std::uint64_t, WaitKey> waiting_keys_;
  Transfers running_;
  std::set<std::pair<TimePoint, std::uint64_t>> timers_;   // may be early, never late
  std::unordered_map<std::uint64_t, TimePoint> timer_of_;  // by id; what stands in timers_
  std::vector<CURL*> idle_;
  TimePoint curl_due_ = kForever;
};

Status CurlTransport::open() {
  HR_TRY(init_curl());
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  multi_ = curl_multi_init();
  if (epoll_ < 0 || wakeup_ < 0 || !multi_) {
    return exhausted("cannot start a network thread: no descriptor or memory left");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakeup_;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event) != 0) {
    return exhausted("cannot start a network thread: epoll refuses");
  }
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlTransport::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlTransport::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(options_.connections) + kIdleConnections);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

CurlTransport::~CurlTransport() {
  if (getpid() != pid_) {
    // A forked child: the thread does not exist here, and libcurl's state belongs to the parent.
    if (thread_.joinable()) new std::thread(std::move(thread_));
    return;
  }
  close();
  for (CURL* easy : idle_) curl_easy_cleanup(easy);
  if (multi_) curl_multi_cleanup(multi_);
  if (wakeup_ >= 0) ::close(wakeup_);
  if (epoll_ >= 0) ::close(epoll_);
}

void CurlTransport::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the reactor is awake anyway.
  [[maybe_unused]] const ssize_t n = ::write(wakeup_, &one, sizeof one);
}

std::uint64_t CurlTransport::submit(HttpRequest request) {
  const std::uint64_t id = next_id_++;
  auto transfer = std::make_unique<CurlTransfer>(id, std::move(request), options_, clock_);
  std::unique_ptr<CurlTransfer> refused;
  {
    MutexLock lock(mutex_);
    if (closing_) {
      refused = std::move(transfer);
    } else {
      submitted_.push_back(std::move(transfer));
    }
  }
  if (refused) {
    refused->finish(CURLE_OK, cancelled("the store was closed"));
  } else {
    wake();
  }
  return id;
}

void CurlTransport::cancel(std::uint64_t id) {
  {
    MutexLock lock(mutex_);
    if (closing_) return;
    cancelled_.push_back(id);
  }
  wake();
}

void CurlTransport::close() {
  if (getpid() != pid_) return;
  {
    MutexLock lock(mutex_);
    closing_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

bool CurlTransport::take_orders() {
  std::vector<std::unique_ptr<CurlTransfer>> fresh;
  std::vector<std::uint64_t> stopped;
  bool closing = false;
  {
    MutexLock lock(mutex_);
    fresh.swap(submitted_);
    stopped.swap(cancelled_);
    closing = closing_;
  }
  for (auto& transfer : fresh) {
    const std::uint64_t id = transfer->id();
    const TimePoint deadline = transfer->request().deadline;
    const WaitKey key{transfer->request().priority, deadline, id};
    set_timer(id, deadline);
    waiting_keys_.emplace(id, key);
    waiting_.emplace(key, std::move(transfer));
  }
  for (std::uint64_t id : stopped) stop_one(id, cancelled("the request was stopped"));
  if (closing) stop_all(cancelled("the store was closed"));
  return !closing;
}

void CurlTransport::start_waiting() {
  while (!waiting_.empty() && running_.size() < options_.connections) {
    auto first = waiting_.extract(waiting_.begin());
    waiting_keys_.erase(first.mapped()->id());
    start(std::move(first.mapped()));
  }
}

void CurlTransport::start(std::unique_ptr<CurlTransfer> transfer) {
  CURL* easy = nullptr;
  if (idle_.empty()) {
    easy = curl_easy_init();
  } else {
    easy = idle_.back();
    idle_.pop_back();
    curl_easy_reset(easy);
  }
  if (!easy) {
    transfer->finish(CURLE_OUT_OF_MEMORY, Status::ok());
    return;
  }
  clear_timer(transfer->id());
  Status status = transfer->start(easy);
  if (status.is_ok() && curl_multi_add_handle(multi_, easy) != CURLM_OK) {
    status = internal_error("libcurl refuses a request");
  }
  if (!status.is_ok()) {
    transfer->finish(CURLE_OK, status);
    release(easy, false);
    return;
  }
  set_timer(transfer->id(), transfer->due());
  running_.emplace(transfer->id(), std::move(transfer));
}

void CurlTransport::release(CURL* easy, bool is_clean) {
  // A handle whose transfer failed (on a name, say) may keep its buffer, and libcurl 7.88 takes no
  // other buffer size then.
  if (is_clean && idle_.size() < options_.connections) {
    // Before the transfer that owns them goes: header list and error buffer.
    curl_easy_reset(easy);
    idle_.push_back(easy);
  } else {
    curl_easy_cleanup(easy);
  }
}

void CurlTransport::set_timer(std::uint64_t id, TimePoint when) {
  clear_timer(id);
  if (when == kForever) return;
  timers_.emplace(when, id);
  timer_of_.emplace(id, when);
}

void CurlTransport::clear_timer(std::uint64_t id) {
  auto found = timer_of_.find(id);
  if (found == timer_of_.end()) return;
  timers_.erase({found->second, id});
  timer_of_.erase(found);
}

void CurlTransport::stop_one(std::uint64_t id, const Status& why) {
  clear_timer(id);
  if (auto key = waiting_keys_.find(id); key != waiting_keys_.end()) {
    auto entry = waiting_.extract(key->second);
    waiting_keys_.erase(key);
    entry.mapped()->finish(CURLE_OK, why);
    return;
  }
  auto found = running_.find(id);
  if (found == running_.end()) return;
  auto transfer = std::move(found->second);
  running_.erase(found);
  // Removing a handle in the middle of a transfer closes its connection.
  curl_multi_remove_handle(multi_, transfer->easy());
  release(transfer->easy(), false);
  transfer->finish(CURLE_OK, why);
}

void CurlTransport::stop_all(const Status& why) {
  while (!waiting_keys_.empty()) stop_one(waiting_keys_.begin()->first, why);
  while (!running_.empty()) stop_one(running_.begin()->first, why);
}

void CurlTransport::reap() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CURL* easy = message->easy_handle;
    void* self = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
    auto found = running_.find(static_cast<CurlTransfer*>(self)->id());
    HR_CHECK(found != running_.end(), "libcurl finished a transfer that does not run");
    auto transfer = std::move(found->second);
    running_.erase(found);
    clear_timer(transfer->id());
    curl_multi_remove_handle(multi_, easy);
    release(easy, code == CURLE_OK);
    transfer->finish(code, Status::ok());
  }
}

void CurlTransport::run_timers() {
  const TimePoint now = clock_.now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::uint64_t id = timers_.begin()->second;
    clear_timer(id);
    if (waiting_keys_.contains(id)) {
      stop_one(id, deadline_exceeded("the deadline passed while the request waited for one of " +
                                     std::to_string(options_.connections) + " connections"));
      continue;
    }
    auto found = running_.find(id);
    if (found == running_.end()) continue;
    if (const TimePoint due = found->second->due(); due > now) {
      set_timer(id, due);
    } else {
      stop_one(id, found->second->overdue(now));
    }
  }
}

int CurlTransport::sleep_ms() const {
  TimePoint until = curl_due_;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  if (until == kForever) return -1;
  const Duration left = until - clock_.now();
  if (left <= Duration(0)) return 0;
  // Rounded up: waking a moment early would spin until the time has come.
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

void CurlTransport::run() {
  std::array<epoll_event, 64> events{};
  while (take_orders()) {
    start_waiting();
    const int count =
        epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), sleep_ms());
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == wakeup_) {
        std::uint64_t drained = 0;
        [[maybe_unused]] const ssize_t n = ::read(wakeup_, &drained, sizeof drained);
        continue;
      }
      int what = 0;
      if (event.events & EPOLLIN) what |= CURL_CSELECT_IN;
      if (event.events & EPOLLOUT) what |= CURL_CSELECT_OUT;
      if (event.events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
      curl_multi_socket_action(multi_, event.data.fd, what, &running);
    }
    if (clock_.now() >= curl_due_) {
      curl_due_ = kForever;
      curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    reap();
    run_timers();
  }
}

int CurlTransport::on_socket(CURL*, curl_socket_t fd, int what, void* self, void* known) {
  auto* transport = static_cast<CurlTransport*>(self);
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(transport->epoll_, EPOLL_CTL_DEL, fd, nullptr);
    return 0;
  }
  epoll_event event{};
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  event.data.fd = fd;
  if (known) {
    epoll_ctl(transport->epoll_, EPOLL_CTL_MOD, fd, &event);
  } else {
    epoll_ctl(transport->epoll_, EPOLL_CTL_ADD, fd, &event);
    // Any non-null pointer tells the next call that the socket is in the epoll.
    curl_multi_assign(transport->multi_, fd, transport);
  }
  return 0;
}

int CurlTransport::on_timer(CURLM*, long timeout_ms, void* self) {
  auto* transport = static_cast<CurlTransport*>(self);
  transport->curl_due_ =
      timeout_ms < 0 ? kForever : transport->clock_.now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> make_curl_transport(TransportOptions options,
                                                           const Clock& clock) {
  auto transport = std::make_unique<CurlTransport>(std::move(options), clock);
  HR_TRY(transport->open());
  return std::unique_ptr<HttpTransport>(std::move(transport));
}

}  // namespace headrace::store
