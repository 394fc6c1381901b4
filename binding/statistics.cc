#include "statistics.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "arguments.h"
#include "dtype/block_ranges.h"
#include "dtype/cell_pool.h"
#include "environment.h"
#include "error.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "job.h"
#include "merged_parts.h"
#include "reorder/run/reorder_file.h"

namespace tilework::binding {
namespace {

// Bytes that a thread counts at a time: long enough for efficient reads and for a thread. A multiple of every
// element size, so parts start at whole elements.
constexpr int64_t kPartBytes = int64_t{1} << 20;

using Flag = std::shared_ptr<std::atomic<bool>>;

// Counts packed elements in parts and merges the parts in order.
class CountingJob : public AsyncJob {
 public:
  CountingJob(Environment& environment, Napi::Env env, std::shared_ptr<Statistics> total, Flag is_busy,
              int64_t count)
      : AsyncJob(environment, env, ceil_div(packed_bytes(total->dtype(), count), kPartBytes)),
        total_(std::move(total)),
        is_busy_(std::move(is_busy)),
        count_(count),
        parts_(*total_) {}
  ~CountingJob() override { is_busy_->store(false); }

 protected:
  // Bytes of the part, in memory of the job or of `scratch`.
  virtual const uint8_t* part_at(int64_t offset, int64_t size, FileScratch& scratch) = 0;

  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*scratch_pool_);
    const Dtype dtype = total_->dtype();
    const int64_t in_part =
        kPartBytes / packed_bytes(dtype, elements_per_group(dtype)) * elements_per_group(dtype);
    const int64_t first = tile * in_part;
    const int64_t count = std::min(in_part, count_ - first);
    Statistics part(dtype, total_->bins());
    part.add(part_at(packed_bytes(dtype, first), packed_bytes(dtype, count), *scratch), count);
    parts_.merge(tile, std::move(part));
  }

  void ended(bool) override {
    scratch_pool_.reset();
    is_busy_->store(false);
  }

 private:
  std::shared_ptr<Statistics> total_;
  Flag is_busy_;
  int64_t count_;
  MergedParts<Statistics> parts_;
  std::shared_ptr<FileScratchPool> scratch_pool_ = FileScratchPool::share();
};

class MemoryCountingJob : public CountingJob {
 public:
  MemoryCountingJob(Environment& environment, Napi::Env env, std::shared_ptr<Statistics> total, Flag is_busy,
                    int64_t count, const Bytes& source)
      : CountingJob(environment, env, std::move(total), std::move(is_busy), count), data_(source.data) {
    pin_source(source);
  }

 protected:
  const uint8_t* part_at(int64_t offset, int64_t, FileScratch&) override { return data_ + offset; }

 private:
  const uint8_t* data_;
};

// Reads by descriptor, also if the file is mapped: a truncated file is then an error and not a signal.
class FileCountingJob : public CountingJob {
 public:
  FileCountingJob(Environment& environment, Napi::Env env, std::shared_ptr<Statistics> total, Flag is_busy,
                  int64_t count, std::shared_ptr<InputFile> file, int64_t offset)
      : CountingJob(environment, env, std::move(total), std::move(is_busy), count),
        file_(*file),
        offset_(offset) {
    hold_file(std::move(file));
  }

 protected:
  const uint8_t* part_at(int64_t offset, int64_t size, FileScratch& scratch) override {
    uint8_t* window = scratch.window(size);
    file_.read_at(window, offset_ + offset, size);
    return window;
  }

 private:
  const InputFile& file_;
  int64_t offset_;
};

// Number of elements; halves for a complex type.
int64_t numbers_of(const Statistics& total, const Napi::Value& value) {
  const int64_t count = whole_number(value, "count");
  packed_bytes(total.dtype(), count);
  return count;
}

void check_size(const Statistics& total, int64_t count, int64_t size) {
  const int64_t needed = packed_bytes(total.dtype(), count);
  if (size == needed) return;
  throw Error(ErrorCode::kArgument, "'bytes' has " + std::to_string(size) + " bytes; " +
                                        std::to_string(count) + " elements need " + std::to_string(needed) +
                                        ".");
}

void take_turn(const Flag& is_busy) {
  if (is_busy->exchange(true))
    throw Error(ErrorCode::kArgument, "Another job is still adding to the statistics.");
}

Napi::Value number_of(Napi::Env env, const ExactValue& value) {
  switch (value.kind) {
    case ExactValue::Kind::kSigned:
      return Napi::BigInt::New(env, value.integer);
    case ExactValue::Kind::kUnsigned:
      return Napi::BigInt::New(env, static_cast<uint64_t>(value.integer));
    case ExactValue::Kind::kDouble:
      break;
  }
  return Napi::Number::New(env, value.number);
}

Napi::Object histogram_of(Napi::Env env, const BinCounts& bins) {
  Napi::Object result = Napi::Object::New(env);
  Napi::Float64Array counts = Napi::Float64Array::New(env, bins.counts().size());
  for (size_t i = 0; i < bins.counts().size(); ++i) counts[i] = static_cast<double>(bins.counts()[i]);
  result.Set("exponent", bins.exponent());
  result.Set("first", static_cast<double>(bins.first()));
  result.Set("counts", counts);
  return result;
}

}  // namespace

Napi::Function StatisticsObject::define(Napi::Env env) {
  return DefineClass(
      env, "NativeStatistics",
      {InstanceMethod<&StatisticsObject::add>("add"), InstanceMethod<&StatisticsObject::add_file>("addFile"),
       InstanceMethod<&StatisticsObject::result>("result")});
}

Napi::Value StatisticsObject::create(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const int64_t bins = std::min<int64_t>(whole_number(info[1], "bins"), INT32_MAX);
    environment.next_statistics =
        std::make_shared<Statistics>(dtype_of(string(info[0], "dtype")), static_cast<int>(bins));
    return environment.statistics_class.New({});
  });
}

StatisticsObject::StatisticsObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<StatisticsObject>(info),
      total_(std::exchange(Environment::of(info.Env()).next_statistics, nullptr)) {
  if (total_ == nullptr) {
    throw Napi::TypeError::New(info.Env(), "Statistics are made by createStatistics() only.");
  }
}

Napi::Value StatisticsObject::add(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const Bytes source = bytes(info[0], "bytes");
    const int64_t count = numbers_of(*total_, info[1]);
    check_size(*total_, count, static_cast<int64_t>(source.size));
    take_turn(is_busy_);
    const auto job =
        std::make_shared<MemoryCountingJob>(environment, info.Env(), total_, is_busy_, count, source);
    job->set_cancel_flag(info[2]);
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value StatisticsObject::add_file(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
    const int64_t count = numbers_of(*total_, info[2]);
    const int64_t offset = read_offset(*file, packed_bytes(total_->dtype(), count), info[1]);
    take_turn(is_busy_);
    const auto job = std::make_shared<FileCountingJob>(environment, info.Env(), total_, is_busy_, count,
                                                       std::move(file), offset);
    job->set_cancel_flag(info[3]);
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value StatisticsObject::result(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Napi::Env env = info.Env();
    if (is_busy_->load()) throw Error(ErrorCode::kArgument, "Another job is still adding to the statistics.");
    Napi::Object result = Napi::Object::New(env);
    const auto set = [&](const char* name, int64_t value) { result.Set(name, static_cast<double>(value)); };
    set("count", total_->count());
    set("nans", total_->nans());
    set("infinities", total_->infinities());
    set("zeros", total_->zeros());
    if (total_->finite() > 0) {
      result.Set("min", number_of(env, total_->min()));
      result.Set("max", number_of(env, total_->max()));
      result.Set("mean", total_->mean());
      result.Set("histogram", histogram_of(env, total_->histogram()));
    }
    return result;
  });
}

Napi::Value extend_block_ranges(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const FloatArray numbers = float_array(info[0], "numbers");
    const int64_t first = whole_number(info[1], "first");
    const RowBlocks blocks{whole_number(info[2], "rowLength"), whole_number(info[3], "blockLength")};
    const FloatArray min = float_array(info[4], "min");
    const FloatArray max = float_array(info[5], "max");
    if (blocks.row_length == 0 || blocks.block_length == 0) {
      throw Error(ErrorCode::kArgument, "'rowLength' and 'blockLength' must be at least 1.");
    }
    if (numbers.count == 0) return info.Env().Undefined();
    const int64_t last =
        blocks.block_of(checked_add(first, numbers.count - 1, "The index of the last number"));
    if (last >= min.count || last >= max.count) {
      throw Error(ErrorCode::kArgument,
                  "'min' and 'max' have no entry for block " + std::to_string(last) + ".");
    }
    tilework::extend_block_ranges(blocks, first, numbers.data, numbers.count, {min.data, max.data});
    return info.Env().Undefined();
  });
}

Napi::Value pool_cells(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const DoubleArray numbers = double_array(info[0], "numbers");
    const CellGrid grid{whole_number(info[1], "columns"), whole_number(info[3], "rowsPerCell"),
                        whole_number(info[4], "columnsPerCell"), whole_number(info[5], "firstCell"),
                        whole_number(info[6], "cellStride")};
    const int64_t first_row = whole_number(info[2], "firstRow");
    const DoubleArray cells = double_array(info[7], "cells");
    const Bytes marks = bytes_during_call(info[8], "marks");
    if (grid.columns < 1 || grid.rows_per_cell < 1 || grid.columns_per_cell < 1) {
      throw Error(ErrorCode::kArgument, "'columns', 'rowsPerCell' and 'columnsPerCell' must be at least 1.");
    }
    const int64_t row_count = numbers.count / grid.columns;
    if (row_count == 0) return info.Env().Undefined();
    const int64_t last_row = checked_add(first_row, row_count - 1, "The last row");
    const int64_t last_line =
        checked_mul(last_row / grid.rows_per_cell, grid.cell_stride, "The last row of cells");
    const int64_t last = checked_add(checked_add(grid.first_cell, last_line, "The last row of cells"),
                                     (grid.columns - 1) / grid.columns_per_cell, "The last cell");
    constexpr int64_t kNumbers = sizeof(CellValues) / sizeof(double);
    if (last >= cells.count / kNumbers || last >= static_cast<int64_t>(marks.size)) {
      throw Error(ErrorCode::kArgument, "'cells' and 'marks' have no cell " + std::to_string(last) + ".");
    }
    auto* const values = reinterpret_cast<CellValues*>(cells.data);
    tilework::pool_cells(grid, first_row, numbers.data, row_count, values, marks.data);
    return info.Env().Undefined();
  });
}

}  // namespace tilework::binding
