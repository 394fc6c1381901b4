#include "differences.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "job.h"
#include "merged_parts.h"
#include "reorder/run/reorder_file.h"

namespace tilework::binding {
namespace {

// Bytes of the wider side that a thread compares at a time: both sides of a part fit the L2 cache.
constexpr int64_t kComparedBytes = int64_t{1} << 19;
// Parts start at whole bytes of every element type.
constexpr int64_t kElementsOfBytes = 8;

// One side of a comparison: bytes, or a range of a file. Files are read by descriptor, also if they are
// mapped: a truncated file is then an error and not a signal.
struct ComparedSide {
  const uint8_t* data = nullptr;
  std::shared_ptr<InputFile> file;
  int64_t offset = 0;

  // `buffer` gives memory for what is read from a file.
  template <class Buffer>
  const uint8_t* at(int64_t start, int64_t size, Buffer buffer) const {
    if (file == nullptr) return data + offset + start;
    uint8_t* memory = buffer(size);
    file->read_at(memory, offset + start, size);
    return memory;
  }
};

// A job over parts of both sides.
class ComparingJob : public AsyncJob {
 public:
  ComparingJob(Environment& environment, Napi::Env env, std::shared_ptr<Comparison> comparison, int64_t parts)
      : AsyncJob(environment, env, parts), comparison_(std::move(comparison)) {}
  ~ComparingJob() override { comparison_->is_busy.store(false); }

  // Takes one side from the arguments, of `size` bytes from an offset on.
  void take(ComparedSide& side, const Napi::Value& value, const Napi::Value& offset, int64_t size) {
    if (const std::optional<Bytes> array = bytes_if_array(value); array.has_value()) {
      const Bytes source = bytes(value, "bytes");
      side.offset = whole_number(offset, "offset");
      if (checked_add(side.offset, size, "The end of a side") > static_cast<int64_t>(source.size)) {
        throw Error(ErrorCode::kRange, "'bytes' has " + std::to_string(source.size) + " bytes; " +
                                           std::to_string(size) + " are needed at offset " +
                                           std::to_string(side.offset) + ".");
      }
      side.data = source.data;
      pin_source(source);
      return;
    }
    side.file = InputFileObject::file_of(value, "file");
    side.offset = read_offset(*side.file, size, offset);
    hold_file(side.file);
  }

  ComparedSide reference;
  ComparedSide other;

 protected:
  void ended(bool) override {
    scratch_pool_.reset();
    comparison_->is_busy.store(false);
  }

  std::shared_ptr<Comparison> comparison_;
  std::shared_ptr<FileScratchPool> scratch_pool_ = FileScratchPool::share();
};

int64_t elements_in_part(const Differences& differences) {
  const int64_t bytes = std::max(packed_bytes(differences.reference_type(), kElementsOfBytes),
                                 packed_bytes(differences.other_type(), kElementsOfBytes));
  return kComparedBytes / bytes * kElementsOfBytes;
}

class DifferencesJob : public ComparingJob {
 public:
  DifferencesJob(Environment& environment, Napi::Env env, const std::shared_ptr<Comparison>& comparison,
                 int64_t count)
      : ComparingJob(environment, env, comparison,
                     ceil_div(count, elements_in_part(comparison->differences))),
        count_(count),
        parts_(comparison->differences) {}

 protected:
  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*scratch_pool_);
    const Differences& total = comparison_->differences;
    const int64_t in_part = elements_in_part(total);
    const int64_t first = tile * in_part;
    const int64_t count = std::min(in_part, count_ - first);
    const auto bytes_of = [&](const ComparedSide& side, Dtype dtype, auto buffer) {
      return side.at(packed_bytes(dtype, first), packed_bytes(dtype, count), buffer);
    };
    Differences part(total.reference_type(), total.other_type(), total.tolerance());
    const uint8_t* a =
        bytes_of(reference, total.reference_type(), [&](int64_t size) { return (*scratch).window(size); });
    const uint8_t* b =
        bytes_of(other, total.other_type(), [&](int64_t size) { return (*scratch).tile(size); });
    part.add(a, b, count);
    parts_.merge(tile, std::move(part));
  }

 private:
  int64_t count_;
  MergedParts<Differences> parts_;
};

// Looks for the first byte that is not the same; parts that have not begun by then are skipped.
class EqualBytesJob : public ComparingJob {
 public:
  EqualBytesJob(Environment& environment, Napi::Env env, const std::shared_ptr<Comparison>& comparison,
                int64_t byte_length)
      : ComparingJob(environment, env, comparison, ceil_div(byte_length, kComparedBytes)),
        byte_length_(byte_length) {}

 protected:
  void run_tile(int64_t tile) override {
    if (comparison_->has_other_bytes.load(std::memory_order_relaxed)) return;
    const FileScratchPool::Lease scratch(*scratch_pool_);
    const int64_t start = tile * kComparedBytes;
    const int64_t size = std::min(kComparedBytes, byte_length_ - start);
    const uint8_t* a = reference.at(start, size, [&](int64_t bytes) { return (*scratch).window(bytes); });
    const uint8_t* b = other.at(start, size, [&](int64_t bytes) { return (*scratch).tile(bytes); });
    if (std::memcmp(a, b, static_cast<size_t>(size)) != 0) comparison_->has_other_bytes.store(true);
  }

 private:
  int64_t byte_length_;
};

void take_turn(Comparison& comparison) {
  if (comparison.is_busy.exchange(true))
    throw Error(ErrorCode::kArgument, "Another job still works on the comparison.");
}

double number(const Napi::Value& value, const char* name) {
  if (value.IsNumber()) return value.As<Napi::Number>().DoubleValue();
  throw Error(ErrorCode::kArgument, "'" + std::string(name) + "' must be a number.");
}

}  // namespace

Napi::Function DifferencesObject::define(Napi::Env env) {
  return DefineClass(env, "NativeDifferences",
                     {InstanceMethod<&DifferencesObject::add>("add"),
                      InstanceMethod<&DifferencesObject::compare_bytes>("compareBytes"),
                      InstanceMethod<&DifferencesObject::result>("result")});
}

Napi::Value DifferencesObject::create(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const Tolerance tolerance{number(info[2], "absolute"), number(info[3], "relative")};
    environment.next_comparison = std::make_shared<Comparison>(
        Differences(dtype_of(string(info[0], "reference")), dtype_of(string(info[1], "other")), tolerance));
    return environment.differences_class.New({});
  });
}

DifferencesObject::DifferencesObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<DifferencesObject>(info),
      comparison_(std::exchange(Environment::of(info.Env()).next_comparison, nullptr)) {
  if (comparison_ == nullptr) {
    throw Napi::TypeError::New(info.Env(), "Differences are made by createDifferences() only.");
  }
}

Napi::Value DifferencesObject::add(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const Differences& differences = comparison_->differences;
    const int64_t count = whole_number(info[4], "count");
    const int64_t reference_size = packed_bytes(differences.reference_type(), count);
    const int64_t other_size = packed_bytes(differences.other_type(), count);
    take_turn(*comparison_);
    const auto job = std::make_shared<DifferencesJob>(environment, info.Env(), comparison_, count);
    job->take(job->reference, info[0], info[1], reference_size);
    job->take(job->other, info[2], info[3], other_size);
    job->set_cancel_flag(info[5]);
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value DifferencesObject::compare_bytes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const int64_t byte_length = whole_number(info[4], "byteLength");
    take_turn(*comparison_);
    const auto job = std::make_shared<EqualBytesJob>(environment, info.Env(), comparison_, byte_length);
    job->take(job->reference, info[0], info[1], byte_length);
    job->take(job->other, info[2], info[3], byte_length);
    job->set_cancel_flag(info[5]);
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value DifferencesObject::result(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Napi::Env env = info.Env();
    if (comparison_->is_busy.load())
      throw Error(ErrorCode::kArgument, "Another job still works on the comparison.");
    const Differences& differences = comparison_->differences;
    const PairCounts& counts = differences.counts();
    Napi::Object result = Napi::Object::New(env);
    const auto set = [&](const char* name, auto value) { result.Set(name, static_cast<double>(value)); };
    set("pairs", counts.pairs);
    set("different", counts.different);
    set("beyond", counts.beyond);
    set("referenceNans", counts.reference_nans);
    set("otherNans", counts.other_nans);
    set("bothNans", counts.both_nans);
    set("firstDifferent", counts.first_different);
    set("firstBeyond", counts.first_beyond);
    set("worst", counts.worst);
    set("worstRelative", counts.worst_relative);
    set("largestError", differences.largest_error());
    set("largestRelativeError", differences.largest_relative_error());
    set("meanError", differences.mean_error());
    set("sqnr", differences.sqnr());
    set("cosine", differences.cosine());
    result.Set("hasEqualBits", differences.has_equal_bits());
    result.Set("hasEqualBytes", !comparison_->has_other_bytes.load());
    return result;
  });
}

}  // namespace tilework::binding
