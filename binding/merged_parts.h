// Results of the parts of a job, merged in the order of the parts whatever thread finishes first.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace tilework::binding {

// A part that finishes early waits for the parts before it, so at most one part per thread waits.
template <class Result>
class MergedParts {
 public:
  explicit MergedParts(Result& total) : total_(total) {}

  void merge(int64_t part, Result result) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(part, std::move(result));
    while (!waiting_.empty() && waiting_.begin()->first == merged_) {
      total_.merge(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++merged_;
    }
  }

 private:
  Result& total_;
  std::mutex mutex_;
  std::map<int64_t, Result> waiting_;
  int64_t merged_ = 0;
};

}  // namespace tilework::binding
