// Plans of small layouts, whole and by ranges and parts, with any kernel that fits and with casts, against
// the oracle of the tests. A source of which only source_ranges() are kept must give the same bytes.
#include "reorder/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "dtype/dtypes.h"
#include "error.h"
#include "fuzz_input.h"
#include "packed_elements.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/kernels.h"
#include "reorder/run/parts.h"
#include "reorder/run/source_ranges.h"
#include "reorder_case.h"

namespace tilework::fuzz {
namespace {

// Larger ones only take longer.
constexpr int64_t kMostElements = 400;
constexpr uint8_t kUnwritten = 0xA5;

bool is_runnable(const ReorderDescription& description) {
  return description.from.elements <= kMostElements && description.to.elements <= kMostElements &&
         elements_of(description.shape, kMostElements) >= 0;
}

// A type of the element's width and one to cast it to; none where the pair cannot be cast.
bool add_cast(ReorderDescription& description, FuzzInput& input) {
  const auto types = dtypes();
  const DtypeInfo& from = types[static_cast<size_t>(input()) % types.size()];
  const DtypeInfo& to = types[static_cast<size_t>(input()) % types.size()];
  CastOptions options;
  options.mode = input.one_in(2) ? CastMode::kOnnx : CastMode::kSpec;
  options.saturate = !input.one_in(2);
  if (from.bits != description.element_bits || (is_complex(from.dtype) && !is_complex(to.dtype)))
    return false;
  description.casts.emplace_back(Cast(from.dtype, to.dtype, options));
  return true;
}

std::vector<uint8_t> expected_cast(const ReorderDescription& description, const ReorderPlan& plan,
                                   const uint8_t* source) {
  const Cast& cast = std::get<Cast>(description.casts.front());
  const int from_bits = info_of(cast.from()).bits;
  const int to_bits = info_of(cast.to()).bits;
  std::vector<uint8_t> expected(static_cast<size_t>(plan.destination_bytes()), 0);
  const std::vector<int64_t> sources = test::sources_of(description);
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    if (sources[slot] < 0) continue;
    uint8_t element[16] = {};
    uint8_t changed[16] = {};
    if (from_bits < 8)
      element[0] = test::packed_element(source, from_bits, sources[slot]);
    else
      std::memcpy(element, source + sources[slot] * (from_bits / 8), static_cast<size_t>(from_bits / 8));
    cast_reference({element, changed, 1, cast.from(), cast.to(), cast.options()});
    const auto index = static_cast<int64_t>(slot);
    if (to_bits < 8)
      test::store_packed_element(expected.data(), to_bits, index, changed[0]);
    else
      std::memcpy(expected.data() + index * (to_bits / 8), changed, static_cast<size_t>(to_bits / 8));
  }
  return expected;
}

void compare(const test::Storage& part, const std::vector<uint8_t>& expected, int64_t begin,
             const ReorderDescription& description, const char* what) {
  if (std::equal(part.data.get(), part.data.get() + part.size, expected.data() + begin)) return;
  finding(std::string(what) + " of [" + std::to_string(begin) + ", " + std::to_string(begin + part.size) +
          ") differs, " + (description.casts.empty() ? "" : "cast, ") + test::describe(description));
}

struct Unwritten : test::Storage {
  explicit Unwritten(int64_t bytes) : Storage(bytes) {
    std::memset(data.get(), kUnwritten, static_cast<size_t>(bytes));
  }
};

void check_range(const ReorderDescription& description, const ReorderPlan& plan, const test::Storage& source,
                 const std::vector<uint8_t>& expected, FuzzInput& input) {
  const int64_t quantum = plan.range_quantum();
  const int64_t quanta = plan.destination_bytes() / quantum;
  const auto bound = [&] { return quantum * (static_cast<int64_t>(input.bits() >> 1) % (quanta + 1)); };
  int64_t begin = bound();
  int64_t end = input.one_in(2) ? plan.destination_bytes() : bound();
  if (begin > end) std::swap(begin, end);
  try {
    plan.check_range(begin, end);
  } catch (const Error&) {
    finding("a range at quanta is refused: " + test::describe(description));
  }
  const Stores stores = input.one_in(2) ? Stores::kStreaming : Stores::kCached;
  const Unwritten part(end - begin);
  plan.run(source.data.get(), part.data.get(), begin, end, stores);
  compare(part, expected, begin, description, "a run");

  const Unwritten kept(source.size);
  for (const ByteRange& range : source_ranges(plan, begin, end, input.below(64))) {
    require(range.begin >= 0 && range.begin < range.end && range.end <= source.size,
            "a source range is outside the source");
    std::memcpy(kept.data.get() + range.begin, source.data.get() + range.begin,
                static_cast<size_t>(range.size()));
  }
  const Unwritten again(end - begin);
  plan.run(kept.data.get(), again.data.get(), begin, end, stores);
  compare(again, expected, begin, description, "a run from source ranges");
}

void check_parts(const ReorderDescription& description, const std::shared_ptr<const ReorderPlan>& plan,
                 const test::Storage& source, const std::vector<uint8_t>& expected, FuzzInput& input) {
  const PartLimits limits{1, 1 + input.below(100), 100 + input(), 1 + input.below(1000)};
  const ReorderParts parts(plan, static_cast<size_t>(1 + input.below(4)), limits);
  const Unwritten whole(plan->destination_bytes());
  for (int64_t part = parts.count(); part-- > 0;) parts.run(part, source.data.get(), whole.data.get());
  compare(whole, expected, 0, description, "the parts");
}

void check_kernel(const ReorderDescription& description, const ReorderPlan& plan, const test::Storage& source,
                  const std::vector<uint8_t>& expected, FuzzInput& input) {
  const auto kernels = reorder_kernels();
  const ReorderKernel& kernel = kernels[static_cast<size_t>(input()) % kernels.size()];
  if (plan.cast() != nullptr || !fits(kernel, plan) || plan.destination_bytes() == 0) return;
  const Unwritten whole(plan.destination_bytes());
  kernel.run({plan, source.data.get(), whole.data.get(), 0, whole.size});
  compare(whole, expected, 0, description, kernel.name);
}

void run(FuzzInput& input) {
  test::BasicRandomLayout<FuzzInput> layouts(input);
  ReorderDescription description = test::random_description(layouts, input());
  const bool damaged = damage(description, input);
  if (!damaged && !is_runnable(description)) return;
  if (input.one_in(3) && !add_cast(description, input)) return;
  std::shared_ptr<const ReorderPlan> plan;
  try {
    plan = std::make_shared<const ReorderPlan>(description);
  } catch (const Error& error) {
    if (!damaged) finding(std::string(error.what()) + " " + test::describe(description));
    return;
  }
  // Plans of 2 bits are made for the casts behind them, which ignore the bits behind the last element.
  const bool is_for_cast = description.element_bits < 4 && description.casts.empty();
  if (!is_runnable(description) || is_for_cast) return;
  test::Storage source(plan->source_bytes());
  uint32_t state = input();
  for (int64_t i = 0; i < source.size; ++i) {
    state = state * 1664525 + 1013904223;
    source.data[i] = static_cast<uint8_t>(state >> 24);
  }
  const std::vector<uint8_t> expected = description.casts.empty()
                                            ? test::expected_of(description, *plan, source.data.get())
                                            : expected_cast(description, *plan, source.data.get());
  const Unwritten whole(plan->destination_bytes());
  plan->run(source.data.get(), whole.data.get(), 0, whole.size);
  compare(whole, expected, 0, description, "the run");
  for (int i = 0; i < 2; ++i) check_range(description, *plan, source, expected, input);
  check_parts(description, plan, source, expected, input);
  check_kernel(description, *plan, source, expected, input);
}

}  // namespace
}  // namespace tilework::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilework::fuzz::FuzzInput input(data, size);
  tilework::fuzz::run(input);
  return 0;
}
