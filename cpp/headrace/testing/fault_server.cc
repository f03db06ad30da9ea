#include "headrace/testing/fault_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <list>
#include <thread>

#include "headrace/base/check.h"
#include "headrace/base/mutex.h"
#include "headrace/testing/fault_service.h"

namespace headrace::testing {
namespace {

constexpr std::size_t kHeadBytesMax = 64 * 1024;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string head_text(const Answer& answer) {
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " X\r\n";
  for (const auto& [name, value] : answer.headers) out += name + ": " + value + "\r\n";
  return out + "\r\n";
}

}  // namespace

struct FaultServer::Impl {
  // One accepted connection; its thread ends when the peer or the server does.
  struct Connection {
    int fd = -1;
    bool reset = false;
    std::thread thread;
    std::string input;
  };

  explicit Impl(FaultServerOptions o) : service(std::move(o)) {
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    stop_event = ::eventfd(0, EFD_CLOEXEC);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    HR_CHECK(::bind(listener, generic, size) == 0 && ::listen(listener, 128) == 0 &&
                 ::getsockname(listener, generic, &size) == 0,
             "the fault server cannot listen on loopback");
    port = ntohs(address.sin_port);
    acceptor = std::thread([this] { accept_all(); });
  }

  ~Impl() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(stop_event, &one, sizeof one);
    acceptor.join();
    for (Connection& connection : connections) {
      connection.thread.join();
    }
    ::close(listener);
    ::close(stop_event);
  }

  // Waits until `fd` can be used; false when the server stops or `timeout_ms` (unless -1) is over.
  bool wait(int fd, short events, int timeout_ms = -1) const {
    pollfd fds[2] = {{stop_event, POLLIN, 0}, {fd, events, 0}};
    const int ready = ::poll(fds, fd >= 0 ? 2 : 1, timeout_ms);
    return ready > 0 && fds[0].revents == 0;
  }

  void accept_all() {
    while (wait(listener, POLLIN)) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++accepted;
      Connection& connection = connections.emplace_back();
      connection.fd = fd;
      connection.thread = std::thread([this, &connection] { serve(connection); });
    }
  }

  bool read_more(Connection& connection) {
    char buffer[65536];
    if (!wait(connection.fd, POLLIN)) return false;
    const ssize_t n = ::recv(connection.fd, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    connection.input.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  bool send_all(int fd, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      if (!wait(fd, POLLOUT)) return false;
      const ssize_t n =
          ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  bool read_request(Connection& connection, SignedRequest& request) {
    std::size_t end = 0;
    while ((end = connection.input.find("\r\n\r\n")) == std::string::npos) {
      if (connection.input.size() > kHeadBytesMax || !read_more(connection)) return false;
    }
    const std::string head = connection.input.substr(0, end + 2);
    connection.input.erase(0, end + 4);
    const std::size_t line_end = head.find("\r\n");
    const std::string line = head.substr(0, line_end);
    const std::size_t space = line.find(' ');
    request.method = line.substr(0, space);
    request.target = line.substr(space + 1, line.rfind(' ') - space - 1);
    for (std::size_t at = line_end + 2; at < head.size();) {
      const std::size_t stop = head.find("\r\n", at);
      const std::string field = head.substr(at, stop - at);
      const std::size_t colon = field.find(':');
      std::string value = field.substr(colon + 1);
      value.erase(0, value.find_first_not_of(' '));
      request.headers.emplace(lower(field.substr(0, colon)), value);
      at = stop + 2;
    }
    if (!header_of(request, "expect").empty()) {
      if (!send_all(connection.fd, "HTTP/1.1 100 Continue\r\n\r\n")) return false;
    }
    const std::size_t length =
        std::strtoull(header_of(request, "content-length").c_str(), nullptr, 10);
    while (connection.input.size() < length) {
      if (!read_more(connection)) return false;
    }
    request.body = connection.input.substr(0, length);
    connection.input.erase(0, length);
    return true;
  }

  Fault fault_for(const SignedRequest& request) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    seen.push_back({request.method, request.target, request.headers});
    for (auto it = faults.begin(); it != faults.end(); ++it) {
      if (!it->method.empty() && it->method != request.method) continue;
      if (request.target.find(it->target_part) == std::string::npos) continue;
      if (it->skip > 0) {
        --it->skip;
        continue;
      }
      const Fault fault = *it;
      if (it->times > 0 && --it->times == 0) faults.erase(it);
      return fault;
    }
    return Fault{};
  }

  void serve(Connection& connection) {
    while (true) {
      SignedRequest request;
      if (!read_request(connection, request)) break;
      const int at_once = ++serving;
      int most = serving_max.load();
      while (at_once > most && !serving_max.compare_exchange_weak(most, at_once)) {}
      const bool goes_on = answer(connection, request);
      --serving;
      if (!goes_on) break;
    }
    // After SO_LINGER 0 the close alone makes a reset; a shutdown would say goodbye first.
    if (!connection.reset) ::shutdown(connection.fd, SHUT_RDWR);
    ::close(connection.fd);
  }

  // False when the connection is to be closed.
  bool answer(Connection& connection, const SignedRequest& request) {
    const Fault fault = fault_for(request);
    if (fault.delay > Duration(0)) {
      (void)wait(-1, 0,
                 static_cast<int>(
                     std::chrono::duration_cast<std::chrono::milliseconds>(fault.delay).count()));
    }
    if (fault.never) {
      // Until the peer gives up or the server stops.
      (void)read_more(connection);
      return false;
    }
    if (fault.raw) {
      (void)send_all(connection.fd, *fault.raw);
      return false;
    }
    Answer out;
    if (fault.status) {
      out.status = *fault.status;
      out.body = fault.body;
      out.is_head = request.method == "HEAD";
    } else {
      out = service.answer(request, fault.ignore_range);
    }
    if (fault.shorten_to) {
      out.body.resize(std::min<std::size_t>(out.body.size(), *fault.shorten_to));
    }
    if (fault.flip_at && *fault.flip_at < out.body.size()) {
      out.body[*fault.flip_at] = static_cast<char>(~out.body[*fault.flip_at]);
    }
    if (out.status != 204) out.set("content-length", std::to_string(out.body.size()));
    for (const auto& [name, value] : fault.headers) out.set(name, value);
    const bool goes_on = send(connection, out, fault);
    if (fault.replace_by) {
      if (const auto key = service.key_of(request)) service.set(*key, *fault.replace_by);
    }
    return goes_on;
  }

  bool send(Connection& connection, const Answer& out, const Fault& fault) {
    if (!send_all(connection.fd, head_text(out))) return false;
    std::string body = out.is_head ? "" : out.body;
    if (fault.cut_at) body.resize(std::min<std::size_t>(body.size(), *fault.cut_at));
    const std::size_t piece = fault.drip_bytes > 0 ? fault.drip_bytes : body.size();
    for (std::size_t at = 0; at < body.size(); at += piece) {
      if (!send_all(connection.fd, body.substr(at, piece))) return false;
      if (fault.drip_bytes > 0) (void)wait(-1, 0, 5);
    }
    if (fault.stall) {
      (void)read_more(connection);
      return false;
    }
    if (fault.reset) {
      const linger now{1, 0};
      ::setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      connection.reset = true;
      return false;
    }
    return !fault.cut_at;
  }

  FaultService service;
  int listener = -1;
  int stop_event = -1;
  int port = 0;
  std::thread acceptor;
  std::list<Connection> connections;  // of the acceptor's thread until it has ended
  std::atomic<std::size_t> accepted{0};
  std::atomic<int> serving{0};
  std::atomic<int> serving_max{0};
  Mutex mutex;
  std::list<Fault> faults HR_GUARDED_BY(mutex);
  std::vector<Seen> seen HR_GUARDED_BY(mutex);
};

FaultServer::FaultServer(FaultServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
FaultServer::~FaultServer() = default;

int FaultServer::port() const { return impl_->port; }
std::string FaultServer::url() const { return "http://127.0.0.1:" + std::to_string(impl_->port); }
void FaultServer::set(const std::string& key, std::string bytes) {
  impl_->service.set(key, std::move(bytes));
}
std::optional<std::string> FaultServer::get(const std::string& key) const {
  return impl_->service.get(key);
}
void FaultServer::add(Fault fault) {
  MutexLock lock(impl_->mutex);
  impl_->faults.push_back(std::move(fault));
}
std::vector<FaultServer::Seen> FaultServer::seen() const {
  MutexLock lock(impl_->mutex);
  return impl_->seen;
}
std::size_t FaultServer::connections() const { return impl_->accepted; }
std::size_t FaultServer::open_uploads() const { return impl_->service.open_uploads(); }
int FaultServer::requests_at_once_max() const { return impl_->serving_max; }

}  // namespace headrace::testing
