// The gather in plain C++.
#include "reorder/gather.h"
#include "reorder/kernels.h"

namespace tilework {

void reorder_x8_gather(const ReorderArguments& a) { gather_all<uint8_t>(a); }
void reorder_x16_gather(const ReorderArguments& a) { gather_all<uint16_t>(a); }
void reorder_x32_gather(const ReorderArguments& a) { gather_all<uint32_t>(a); }
void reorder_x64_gather(const ReorderArguments& a) { gather_all<uint64_t>(a); }
void reorder_x128_gather(const ReorderArguments& a) { gather_all<Unit128>(a); }

}  // namespace tilework
