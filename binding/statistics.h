// The JavaScript class of statistics that count a tensor in several jobs.
#pragma once

#include <napi.h>

#include <memory>

#include "dtype/statistics.h"

namespace tilework::binding {

class StatisticsObject : public Napi::ObjectWrap<StatisticsObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // createStatistics(dtype, bins)
  static Napi::Value create(const Napi::CallbackInfo& info);

  explicit StatisticsObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value add(const Napi::CallbackInfo& info);
  Napi::Value add_file(const Napi::CallbackInfo& info);
  Napi::Value result(const Napi::CallbackInfo& info);

  // Shared with the job that adds to it; one job at a time.
  std::shared_ptr<Statistics> total_;
  std::shared_ptr<std::atomic<bool>> is_busy_ = std::make_shared<std::atomic<bool>>(false);
};

// extendBlockRanges(numbers, first, rowLength, blockLength, min, max): in one synchronous call.
Napi::Value extend_block_ranges(const Napi::CallbackInfo& info);

// poolCells(numbers, columns, firstRow, rowsPerCell, columnsPerCell, firstCell, cellStride, cells, marks): in
// one synchronous call.
Napi::Value pool_cells(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
