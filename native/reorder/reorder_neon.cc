// The kernels of 64-bit ARM, all of whose processors have NEON: its registers in pairs.
#include "reorder/leaf/machine.h"

namespace tilework {

const Leaves& leaves_neon() { return kLeaves; }

void reorder_tiles_neon(const ReorderArguments& a) { run_programs(a, kLeaves); }

void copy_neon(const ReorderArguments& a) { copy_range(a); }

}  // namespace tilework
