#include "reorder/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cpu/cache.h"
#include "error.h"
#include "io/checked_math.h"
#include "reorder/box_stage.h"
#include "reorder/box_transpose.h"
#include "reorder/fused_cast.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

constexpr ReorderKernel kKernels[] = {
#define TILEWORK_REORDER_KERNEL(name, bits, nest_class, isa, reason) \
  {#name, bits, NestClass::nest_class, Isa::isa, &name, reason},
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL
};

// Elements of 2 bits are copied only.
constexpr int kElementBits[] = {2, 4, 8, 16, 32, 64, 128};

int checked_bits(int bits) {
  if (std::find(std::begin(kElementBits), std::end(kElementBits), bits) == std::end(kElementBits)) {
    throw Error(ErrorCode::kArgument,
                "'elementBits' is " + std::to_string(bits) + ", not 2, 4, 8, 16, 32, 64 or 128.");
  }
  return bits;
}

int64_t bytes_of(int64_t elements, int bits) {
  if (bits < 8) return ceil_div(elements, 8 / bits);
  return checked_mul(elements, bits / 8, "The number of storage bytes");
}

// Loops that step alike were merged, so a destination that is one range of the source is a single run.
std::optional<int64_t> copy_offset_of(const ReorderPlan& plan) {
  if (plan.destination_elements() == 0) return 0;
  if (plan.nests().size() != 1) return std::nullopt;
  const LoopNest& nest = plan.nests().front();
  const Node& node = nest.nodes.front();
  const bool is_run = nest.nodes.size() == 1 && !nest.all_zero && node.variable == kNone &&
                      node.lookup == kNone && node.source_stride == 1 && node.destination_stride == 1 &&
                      node.count == plan.destination_elements();
  if (!is_run) return std::nullopt;
  if (plan.element_bits() >= 8) return nest.source_base * (plan.element_bits() / 8);
  const int per_byte = 8 / plan.element_bits();
  if (nest.source_base % per_byte != 0) return std::nullopt;
  // The half byte behind the last element is zero in the destination and may be anything in the source. There
  // is no kernel that could clear more than a half.
  const bool is_whole = per_byte != 2 || plan.destination_elements() % per_byte == 0;
  return is_whole ? std::optional(nest.source_base / per_byte) : std::nullopt;
}

bool is_copy(NestClass nest_class) {
  return nest_class == NestClass::kIdentity || nest_class == NestClass::kView;
}

double passes_of(const LoopNest& nest) {
  double passes = 1;
  for (const Node& node : nest.nodes) passes *= static_cast<double>(node.count);
  return passes;
}

// Number of the nest that does most; none where there is nothing to do.
std::optional<size_t> largest_nest(const std::vector<LoopNest>& nests) {
  const auto largest = std::max_element(nests.begin(), nests.end(), [](const LoopNest& a, const LoopNest& b) {
    return passes_of(a) < passes_of(b);
  });
  if (largest == nests.end()) return std::nullopt;
  return static_cast<size_t>(largest - nests.begin());
}

NestClass class_of(const ReorderPlan& plan) {
  if (plan.copy_offset()) {
    const bool is_all = plan.source_bytes() == plan.destination_bytes();
    return is_all ? NestClass::kIdentity : NestClass::kView;
  }
  const std::optional<size_t> largest = largest_nest(plan.nests());
  return largest ? plan.inner_loops()[*largest].nest_class : NestClass::kLoopNest;
}

// The rectangles of the largest nest: "; 3136 x 16 at a time".
std::string rectangle_text(const ReorderPlan& plan) {
  const std::optional<size_t> largest = largest_nest(plan.nests());
  if (!largest || !plan.inner_loops()[*largest].column_level) return {};
  const std::vector<Node>& nodes = plan.nests()[*largest].nodes;
  const Node& column = nodes[*plan.inner_loops()[*largest].column_level];
  return "; " + std::to_string(column.count) + " x " + std::to_string(nodes.back().count) + " at a time";
}

// Wider elements are moved one by one as well.
constexpr int kMaxTransposedBits = 64;

// Kernels exist up to this width.
constexpr int kMaxUnitBits = 128;

// The plan in units that all its nests keep together, or null.
std::shared_ptr<const ReorderPlan> units_of(const ReorderPlan& plan, Staging staging) {
  if (plan.copy_offset() || plan.nests().empty()) return nullptr;
  const int64_t most = kMaxUnitBits / plan.element_bits();
  const int64_t elements = unit_elements(plan.nests().front(), most);
  const bool is_common = std::all_of(plan.nests().begin(), plan.nests().end(), [=](const LoopNest& nest) {
    return unit_elements(nest, most) == elements;
  });
  const int64_t bits = elements * plan.element_bits();
  if (!is_common || elements == 1 || bits < 8) return nullptr;
  std::vector<LoopNest> nests;
  for (const LoopNest& nest : plan.nests()) nests.push_back(over_units(nest, elements));
  return std::make_shared<ReorderPlan>(static_cast<int>(bits), std::move(nests),
                                       plan.source_elements() / elements,
                                       plan.destination_elements() / elements, staging);
}

// Bytes that boxes reach over: ranges that begin and end at multiples of them cut none.
int64_t reach_of_box(const ReorderPlan& plan, size_t nest) {
  int64_t reach = 1;
  for (size_t level = 0; level < plan.nests()[nest].nodes.size(); ++level) {
    const int64_t passes = plan.box(nest)->passes[level];
    if (passes > 1) reach = std::max(reach, passes * plan.nests()[nest].nodes[level].destination_stride);
  }
  return bytes_of(reach, plan.element_bits());
}

// The same; a cache line where they are more than `most`.
int64_t box_unit(const ReorderPlan& plan, size_t nest, int64_t most) {
  const int64_t bytes = reach_of_box(plan, nest);
  return bytes < kLineBytes || bytes > most ? kLineBytes : bytes;
}

}  // namespace

std::span<const ReorderKernel> reorder_kernels() { return kKernels; }

bool fits(const ReorderKernel& kernel, const ReorderPlan& plan) {
  if (kernel.element_bits != 0 && kernel.element_bits != plan.element_bits()) return false;
  if (!can_run(kernel.isa)) return false;
  if (kernel.nest_class == NestClass::kLoopNest) return !is_copy(plan.nest_class());
  return kernel.nest_class == plan.nest_class();
}

ReorderPlan::ReorderPlan(const ReorderDescription& description)
    : element_bits_(checked_bits(description.element_bits)) {
  if (!description.casts.empty()) {
    cast_ = std::make_shared<const FusedCast>(description);
    source_elements_ = cast_->moves().source_elements();
    destination_elements_ = cast_->moves().destination_elements();
    source_bytes_ = cast_->moves().source_bytes();
    destination_bytes_ = cast_->destination_bytes();
    kernel_ = cast_->moves().kernel_;
    return;
  }
  const std::vector<int64_t>& whole = description.slice ? description.slice->shape : description.shape;
  const BoundSide from = bind_side(whole, description.from, "from");
  const BoundSide to = bind_side(description.shape, description.to, "to");
  source_elements_ = from.elements;
  destination_elements_ = to.elements;
  source_bytes_ = bytes_of(source_elements_, element_bits_);
  destination_bytes_ = bytes_of(destination_elements_, element_bits_);
  nests_ = join(description.shape, from, to, bind_slice(description.shape, description.slice));
  copy_offset_ = copy_offset_of(*this);
  choose_kernel();
}

ReorderPlan::ReorderPlan(int element_bits, std::vector<LoopNest> nests, int64_t source_elements,
                         int64_t destination_elements, Staging staging)
    : element_bits_(element_bits),
      staging_(staging),
      source_elements_(source_elements),
      destination_elements_(destination_elements),
      source_bytes_(bytes_of(source_elements, element_bits)),
      destination_bytes_(bytes_of(destination_elements, element_bits)),
      nests_(std::move(nests)) {
  choose_kernel();
}

ReorderPlan::ReorderPlan(int element_bits, LoopNest nest, int64_t source_elements,
                         int64_t destination_elements, Staging staging)
    : ReorderPlan(element_bits, std::vector<LoopNest>{std::move(nest)}, source_elements, destination_elements,
                  staging) {}

// Chains go through a buffer or touch short pieces; boxes of the same loops have more of both sides at once.
bool ReorderPlan::is_better_in_boxes(const LoopNest& nest) const {
  constexpr double kManyElements = 16384;
  const InnerLoops& inner = inner_loops_.back();
  const bool is_candidate = inner.nest_class == NestClass::kTiles && element_bits_ >= 8 &&
                            element_bits_ <= kMaxTransposedBits && passes_of(nest) >= kManyElements;
  if (!is_candidate) return false;
  const int64_t size = element_bits_ / 8;
  const bool wastes = wastes_lines(nest, inner, size, stores_of_whole(1));
  if (!wastes && inner.chain == InnerLoops::Chain::kNone && !inner.pixel_level) return false;
  const NestBox box(nest, box_limits(element_bits_), source_elements_);
  const auto transpose = make_transpose(nest, box, size);
  if (transpose == nullptr || wastes) return transpose != nullptr;
  // Tails are moved by lists, and no box is streamed.
  const std::vector<BoxState> states = first_states(nest, box, 2);
  const bool is_whole = states.size() == 1 && is_uncut(nest, box, states.front());
  if (!is_whole || stores_of_whole(1) == Stores::kStreaming) return false;
  if (fits_lists(nest, inner, size)) return false;
  // Pixels are moved well, until their lines push each other out of the cache.
  if (inner.pixel_level) return transpose->by_lines;
  if (transpose->shares_lines) return inner.chain == InnerLoops::Chain::kInterleaved;
  return !transpose->by_lines || transpose->fills_lines;
}

void ReorderPlan::choose_kernel() {
  for (const LoopNest& nest : nests_) {
    inner_loops_.push_back(tilework::inner_loops(nest));
    if (is_better_in_boxes(nest)) inner_loops_.back() = {};
    ordered_.push_back(in_source_order(nest, inner_loops_.back(), element_bits_ / 8));
  }
  nest_class_ = class_of(*this);
  const auto kernel = std::find_if(std::begin(kKernels), std::end(kKernels),
                                   [this](const ReorderKernel& at) { return fits(at, *this); });
  if (kernel == std::end(kKernels)) {
    throw Error(ErrorCode::kUnsupported,
                "No reorder kernel moves elements of " + std::to_string(element_bits_) + " bits.");
  }
  kernel_ = kernel;
  units_ = units_of(*this, staging_);
  boxes_.resize(nests_.size());
  stages_.resize(nests_.size());
  transposes_.resize(nests_.size());
  gather_moves_.resize(nests_.size());
  if (!copy_offset_) make_boxes();
}

// Nests that have another class than the kernel's are moved by boxes as well.
void ReorderPlan::make_boxes() {
  for (size_t i = 0; i < nests_.size(); ++i) {
    const NestClass nest_class = inner_loops_[i].nest_class;
    if (nest_class == kernel_->nest_class && nest_class != NestClass::kLoopNest) continue;
    boxes_[i] = std::make_shared<NestBox>(nests_[i], box_limits(element_bits_), source_elements_);
    if (element_bits_ < 8) {
      stages_[i] = make_stage(nests_[i], *boxes_[i], 8, StageDestination::kDense);
      transposes_[i] = make_nibble_transpose(nests_[i], *boxes_[i]);
      continue;
    }
    if (element_bits_ <= kMaxTransposedBits)
      transposes_[i] = make_transpose(nests_[i], *boxes_[i], element_bits_ / 8);
    const bool may_stage = staging_ == Staging::kAllowed && transposes_[i] == nullptr;
    if (may_stage && turns_steps(nests_[i], *boxes_[i])) {
      stages_[i] = make_stage(nests_[i], *boxes_[i], element_bits_, StageDestination::kInPlace);
    }
    list_moves(i);
  }
  if (element_bits_ < 8) note_whole_boxes();
}

void ReorderPlan::note_whole_boxes() {
  if (nests_.size() != 1 || transposes_.front() == nullptr) return;
  if (passes_of(nests_.front()) != static_cast<double>(destination_elements_)) return;
  const std::vector<BoxState> states = first_states(nests_.front(), *boxes_.front(), 2);
  const bool is_whole = states.size() == 1 && is_full(nests_.front(), *boxes_.front(), states.front());
  if (is_whole) bytes_of_whole_boxes_ = reach_of_box(*this, 0);
}

// Of as many states as there is room for beside the box: lists take longer to make than to follow.
void ReorderPlan::list_moves(size_t nest) {
  const NestBox& box = *boxes_[nest];
  int64_t room = kMaxBoxTableBytes - box.bytes();
  for (BoxState& state : first_states(nests_[nest], box, kKnownStates)) {
    GatherMoves moves;
    list_gather(moves, nests_[nest], box, state, stages_[nest].get(), transposes_[nest].get(),
                element_bits_ / 8);
    room -= moves.bytes();
    if (room < 0) return;
    gather_moves_[nest].push_back({std::move(state), std::move(moves)});
  }
}

// A range may cut units; what it cuts off is moved by elements.
void ReorderPlan::run_units(const ReorderArguments& all) const {
  const int64_t unit = units_->element_bits_ / 8;
  const int64_t first = std::min(ceil_div(all.begin, unit) * unit, all.end);
  const int64_t last = std::max(all.end / unit * unit, first);
  const auto run_part = [&all](const ReorderPlan& plan, int64_t begin, int64_t end) {
    if (begin >= end) return;
    plan.kernel_->run({plan, all.source, all.destination + (begin - all.begin), begin, end, all.stores});
  };
  run_part(*this, all.begin, first);
  run_part(*units_, first, last);
  run_part(*this, last, all.end);
}

void ReorderPlan::run_cast(const ReorderArguments& arguments) const { cast_->run(arguments); }

int64_t ReorderPlan::range_quantum() const {
  return cast_ ? cast_->range_quantum() : std::max(element_bits_ / 8, 1);
}

int64_t ReorderPlan::range_unit(int64_t most) const {
  if (cast_) return cast_->range_unit(most);
  if (units_) return units_->range_unit(most);
  const std::optional<size_t> largest = largest_nest(nests_);
  if (largest && boxes_[*largest] != nullptr) return box_unit(*this, *largest, most);
  // No kernel makes rectangles of elements below a byte.
  if (nest_class_ != NestClass::kTiles || element_bits_ < 8 || !largest) return kLineBytes;
  const Node& column = nests_[*largest].nodes[*inner_loops_[*largest].column_level];
  const int64_t bytes = column.destination_stride * (element_bits_ / 8);
  // As many columns as make a line of the source.
  const int64_t line = std::min(std::max<int64_t>(kLineBytes * 8 / element_bits_, 1), column.count);
  const int64_t columns = std::min(line, most / bytes);
  const int64_t unit = columns * bytes;
  return unit < kLineBytes ? kLineBytes : unit;
}

Stores ReorderPlan::stores_of_whole(size_t threads) const {
  // Others use a part of the cache: from half of it on a thread's plain stores are no faster than these, even
  // for a copy. The buffers in which streamed lines wait are few, and hardware threads share them: there
  // plain stores are faster up to three quarters (docs/performance.md).
  const int64_t quarter = last_level_cache_bytes() / 4;
  const int64_t most = threads > 1 ? 3 * quarter : 2 * quarter;
  return source_bytes_ + destination_bytes_ > most ? Stores::kStreaming : Stores::kCached;
}

std::string ReorderPlan::reason() const {
  if (cast_) return cast_->reason();
  if (units_) {
    return units_->reason() + "; " + std::to_string(units_->element_bits_ / element_bits_) +
           " elements are moved as one";
  }
  std::string reason = kernel_->reason;
  if (nest_class_ == NestClass::kView) reason += ", from byte " + std::to_string(*copy_offset_) + " on";
  if (kernel_->nest_class == NestClass::kTiles || kernel_->nest_class == NestClass::kRuns) {
    reason += rectangle_text(*this);
  }
  bool lookup = false;
  for (const LoopNest& nest : nests_) lookup = lookup || !nest.lookups.empty();
  const bool is_packed =
      std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage != nullptr; });
  if (is_packed && element_bits_ >= 8) reason += "; a box is packed in the cache first";
  if (lookup) reason += "; extents, paddings and blocks do not divide each other, so offsets are looked up";
  if (nests_.size() > 1) {
    reason +=
        "; " + std::to_string(nests_.size()) + " nests, as a layout stores a part of the tensor differently";
  }
  return reason;
}

void ReorderPlan::check_range(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > destination_bytes_) {
    throw Error(ErrorCode::kArgument, "The destination range [" + std::to_string(begin) + ", " +
                                          std::to_string(end) + ") does not lie in the " +
                                          std::to_string(destination_bytes_) + " bytes of the destination.");
  }
  const int64_t unit = range_quantum();
  if (begin % unit != 0 || (end % unit != 0 && end != destination_bytes_)) {
    throw Error(ErrorCode::kArgument, "The destination range [" + std::to_string(begin) + ", " +
                                          std::to_string(end) + ") cuts an element of " +
                                          std::to_string(unit) + " bytes.");
  }
}

}  // namespace tilework
