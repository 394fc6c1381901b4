#include "reorder_file.h"

#include <atomic>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "output_file.h"
#include "reorder/run/reorder_file.h"
#include "reorder_run.h"

namespace tilework::binding {
namespace {

// Files are read by descriptor, mapped ones too: truncating a mapped file kills the process that reads the
// mapping. Tiles run on the compute threads, since each tile is a kernel between reads and writes. While one
// thread waits for the disk another computes, and no more threads run than there are CPUs. Jobs alternate
// tile by tile, so a slow disk delays other jobs by one tile at most.
class ReadingJob : public AsyncJob {
 public:
  ReadingJob(Environment& environment, Napi::Env env, FileReorder reorder, std::shared_ptr<InputFile> file,
             int64_t offset, uint8_t* destination)
      : AsyncJob(environment, env, reorder.tiles()),
        reorder_(std::move(reorder)),
        file_(*file),
        offset_(offset),
        destination_(destination) {
    hold_file(std::move(file));
  }

 protected:
  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*scratch_pool_);
    reorder_.run_tile(tile, {file_, offset_}, destination_, *scratch);
  }
  void ended(bool) override { scratch_pool_.reset(); }

 private:
  FileReorder reorder_;
  const InputFile& file_;
  int64_t offset_;
  uint8_t* destination_;
  std::shared_ptr<FileScratchPool> scratch_pool_ = FileScratchPool::share();
};

class FileToFileJob : public OutputJob {
 public:
  FileToFileJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> output,
                FileReorder reorder, std::shared_ptr<InputFile> source, int64_t offset, int64_t position)
      : OutputJob(environment, env, std::move(output), reorder.tiles()),
        reorder_(std::move(reorder)),
        source_(*source),
        offset_(offset),
        position_(position) {
    hold_file(std::move(source));
  }

 protected:
  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*scratch_pool_);
    reorder_.run_tile(tile, {source_, offset_}, file(), position_, *scratch);
  }
  void ended(bool succeeded) override {
    scratch_pool_.reset();
    OutputJob::ended(succeeded);
  }

 private:
  FileReorder reorder_;
  const InputFile& source_;
  int64_t offset_;
  int64_t position_;
  std::shared_ptr<FileScratchPool> scratch_pool_ = FileScratchPool::share();
};

}  // namespace

Napi::Value run_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan) {
  Environment& environment = Environment::of(info.Env());
  std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
  const int64_t offset = read_offset(*file, plan->source_bytes(), info[1]);
  const Bytes destination = bytes(info[2], "destination");
  const Target target = target_of(*plan, destination, info[3], info[4]);
  FileReorder reorder(std::move(plan), target.begin, target.end);
  const auto job = std::make_shared<ReadingJob>(environment, info.Env(), std::move(reorder), std::move(file),
                                                offset, target.destination);
  job->set_cancel_flag(info[5]);
  job->pin(destination.array);
  return environment.start(job, environment.pools().compute);
}

Napi::Value run_file_sync(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan) {
  const std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
  const int64_t offset = read_offset(*file, plan->source_bytes(), info[1]);
  const Bytes destination = bytes_during_call(info[2], "destination");
  const Target target = target_of(*plan, destination, info[3], info[4]);
  const std::shared_ptr<FileScratchPool> scratch_pool = FileScratchPool::share();
  const FileReorder reorder(std::move(plan), target.begin, target.end);
  // In order, for the read-ahead of the system.
  std::atomic<int64_t> next{0};
  Environment::of(info.Env()).pools().compute.run(reorder.tiles(), [&](int64_t) {
    const FileScratchPool::Lease scratch(*scratch_pool);
    reorder.run_tile(next.fetch_add(1), {*file, offset}, target.destination, *scratch);
  });
  file->verify_unchanged();
  return info.Env().Undefined();
}

Napi::Value run_to_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan) {
  Environment& environment = Environment::of(info.Env());
  std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
  const int64_t offset = read_offset(*file, plan->source_bytes(), info[1]);
  std::shared_ptr<OutputFile> output = OutputFileObject::file_of(info[2], "output");
  const int64_t begin = whole_number(info[3], "start");
  const int64_t end = whole_number(info[4], "end");
  plan->check_range(begin, end);
  const int64_t position = whole_number(info[5], "position");
  checked_add(position, end - begin, "The end of a write");
  FileReorder reorder(std::move(plan), begin, end);
  const auto job = std::make_shared<FileToFileJob>(environment, info.Env(), std::move(output),
                                                   std::move(reorder), std::move(file), offset, position);
  job->set_cancel_flag(info[6]);
  return job->announce_and_start(environment, environment.pools().compute);
}

}  // namespace tilework::binding
