// Task: a move-only callable of no arguments, run once (std::function cannot hold move-only state).
// Thread-safety: made on one thread and run on another; never on two at once.
// Ownership: owns what the callable captured.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace headrace::exec {

class Task {
 public:
  Task() = default;
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, Task> && std::invocable<std::decay_t<F>&>)
  Task(F&& call)  // NOLINT(*-explicit-*)
      : holder_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(call))) {}

  explicit operator bool() const { return holder_ != nullptr; }
  // Runs the callable and frees what it captured.
  void operator()() {
    auto holder = std::move(holder_);
    holder->run();
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void run() = 0;
  };
  template <typename F>
  struct Holder final : Base {
    explicit Holder(F f) : call(std::move(f)) {}
    void run() override { call(); }
    F call;
  };
  std::unique_ptr<Base> holder_;
};

}  // namespace headrace::exec
