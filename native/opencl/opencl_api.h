// The part of the OpenCL 1.2 API that tilework calls. It is declared here because no package registry of the
// build has the Khronos headers. Source: Khronos, The OpenCL Specification, version 1.2, sections 4 and 5;
// values from its registry (cl.xml).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilework::cl {

using Int = int32_t;
using Uint = uint32_t;
using Ulong = uint64_t;
using Bool = Uint;
using Bitfield = Ulong;

using Platform = struct PlatformObject*;
using Device = struct DeviceObject*;
using Context = struct ContextObject*;
using Queue = struct QueueObject*;
using Memory = struct MemoryObject*;
using Program = struct ProgramObject*;
using Kernel = struct KernelObject*;
using Event = struct EventObject*;

inline constexpr Int kSuccess = 0;
inline constexpr Int kDeviceNotFound = -1;
inline constexpr Int kDeviceNotAvailable = -2;
inline constexpr Int kMemoryAllocationFailure = -4;
inline constexpr Int kOutOfResources = -5;
inline constexpr Int kOutOfHostMemory = -6;
inline constexpr Int kBuildFailure = -11;
inline constexpr Int kExecStatusError = -14;
inline constexpr Int kInvalidContext = -34;
inline constexpr Int kInvalidCommandQueue = -36;
inline constexpr Int kInvalidBuildOptions = -43;
inline constexpr Int kInvalidBufferSize = -61;
// Status of the ICD loader if it finds no driver (cl_khr_icd).
inline constexpr Int kPlatformNotFound = -1001;

inline constexpr Bitfield kDeviceTypeCpu = 1 << 1;
inline constexpr Bitfield kDeviceTypeGpu = 1 << 2;
inline constexpr Bitfield kDeviceTypeAccelerator = 1 << 3;
inline constexpr Bitfield kDeviceTypeAll = 0xffffffff;

inline constexpr Uint kPlatformName = 0x0902;
inline constexpr Uint kDeviceType = 0x1000;
inline constexpr Uint kDeviceMaxWorkGroupSize = 0x1004;
inline constexpr Uint kDeviceMaxAllocation = 0x1010;
inline constexpr Uint kDeviceGlobalMemory = 0x101f;
inline constexpr Uint kDeviceLocalMemory = 0x1023;
inline constexpr Uint kDeviceLittleEndian = 0x1026;
inline constexpr Uint kDeviceAvailable = 0x1027;
inline constexpr Uint kDeviceCompilerAvailable = 0x1028;
inline constexpr Uint kDeviceName = 0x102b;
inline constexpr Uint kDriverVersion = 0x102d;
inline constexpr Uint kDeviceProfile = 0x102e;
inline constexpr Uint kDeviceVersion = 0x102f;
inline constexpr Uint kDeviceUnifiedMemory = 0x1035;

inline constexpr Uint kProgramBuildLog = 0x1183;

inline constexpr Uint kKernelWorkGroupSize = 0x11b0;

inline constexpr Uint kEventExecutionStatus = 0x11d3;

inline constexpr Bitfield kQueueProfiling = 1 << 1;
inline constexpr Uint kProfilingStart = 0x1282;
inline constexpr Uint kProfilingEnd = 0x1283;

inline constexpr Bitfield kMemoryReadWrite = 1 << 0;
inline constexpr Bitfield kMemoryReadOnly = 1 << 2;
inline constexpr Bitfield kMemoryUseHostPointer = 1 << 3;
inline constexpr Bitfield kMemoryAllocateHostPointer = 1 << 4;
inline constexpr Bitfield kMemoryCopyHostPointer = 1 << 5;

inline constexpr Bitfield kMapRead = 1 << 0;
inline constexpr Bitfield kMapWrite = 1 << 1;

// The functions by their names in the library.
struct Api {
#define TILEWORK_OPENCL_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "opencl/opencl_functions.def"
#undef TILEWORK_OPENCL_FUNCTION
};

}  // namespace tilework::cl
