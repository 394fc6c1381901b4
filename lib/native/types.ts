/**
 * The types of what the addon exports. They mirror `binding/`: each interface is one object that C++ makes, and its
 * comments are the contract of that side.
 */
import type { Dtype } from '../dtype/dtypes.js'

/** An object that holds a DLPack tensor until an addon takes it, or until it is garbage-collected. */
export interface DlpackCapsule {
  /** The capsule names that Python uses: `DLManagedTensorVersioned`, or `DLManagedTensor`. */
  readonly name: 'dltensor_versioned' | 'dltensor'
}

/**
 * An open file that is read. Mapped, its views share memory with the page cache; the mapping is private and writable,
 * so a stray store changes a copy, never the file. Not mapped, every read is a copy by descriptor.
 */
export interface NativeInputFile {
  readonly byteLength: number
  readonly isMapped: boolean
  /**
   * A view of `[start, end)` on the mapping; a copy where the runtime refuses external buffers.
   * Throws ERR_CLOSED, ERR_RANGE, ERR_FILE_CHANGED; ERR_ARGUMENT for a file that is not mapped.
   */
  view(start: number, end: number): Uint8Array
  /**
   * Fills `target` with the bytes from `start` on, by descriptor, so that a truncated file is an error and no signal.
   * Throws ERR_CLOSED, ERR_RANGE, ERR_FILE_CHANGED, a system error.
   */
  read(start: number, target: Uint8Array): Promise<void>
  readSync(start: number, target: Uint8Array): void
  /** Throws ERR_FILE_CHANGED if size or modification time moved since the file was opened. */
  verifyUnchanged(): void
  /** What is open, whatever has its name by now: device and inode, and how many names it has. Throws ERR_CLOSED. */
  identity(): { readonly device: bigint; readonly inode: bigint; readonly links: bigint }
  /** Drops the owner's use; memory goes with its last user. `revoke` also detaches the views given out. */
  close(revoke: boolean): void
}

/** Numbers of the fields of ONNX that plain tensors have. */
export interface NativePlainTensorRules {
  /** Of the message: its tensors. */
  readonly list: number
  readonly dims: number
  readonly dataType: number
  readonly name: number
  readonly rawData: number
  readonly docString: number
  readonly dataLocation: number
  /** Bits of an element by data type; 0 for types that are not plain. */
  readonly elementBits: Uint8Array
  readonly maxAxes: number
}

export interface NativePlainTensors {
  /** Of the first field that was not taken. */
  readonly position: number
  readonly bytesRead: number
  /** Bytes of all values together. */
  readonly valueBytes: number
  /** Three a tensor: byte offset of its values, end of its message, end of its header in `headers`. */
  readonly places: Float64Array
  /** All fields as they stand, but the values. */
  readonly headers: Uint8Array
}

/** One digit of a layout in memory, as the planner takes it. */
export interface NativeDigit {
  /** Positions of the axes in logical order; more than one means a fused row-major index over padded extents. */
  readonly axes: readonly number[]
  readonly radix: number
  readonly weight: number
}

/** A list of digits that holds for a part of the tensor: `lo <= padded index of axis < hi`. */
export interface NativePiece {
  readonly axis: number
  readonly lo: number
  readonly hi: number
  /** Outermost first; Horner over the list gives the element offset. Number of slots is the product of the radices. */
  readonly digits: readonly NativeDigit[]
}

/** One side of a reorder: a layout bound to a shape. */
export interface NativeSide {
  /** Explicit padding before the first element, one count an axis. */
  readonly lower: readonly number[]
  readonly upper: readonly number[]
  /** Usually one piece that covers everything (axis 0, 0 … Infinity is written as Number.MAX_SAFE_INTEGER). */
  readonly pieces: readonly NativePiece[]
  /** Storage elements, holes included. */
  readonly elements: number
}

/**
 * The part of a source that a plan takes: along each axis the source's logical index is `start + step * i` for i from
 * 0 to the extent of the plan's shape.
 */
export interface NativeSlice {
  /** Logical extents of the whole source, one an axis; `from` is bound to these. */
  readonly shape: readonly number[]
  readonly start: readonly number[]
  /** Not 0; below 0 walks backwards. */
  readonly step: readonly number[]
}

/** One change of the element type on the way of a reorder; see `cast` for what the options mean. */
export interface NativeCast {
  readonly from: string
  readonly to: string
  readonly mode: 'spec' | 'onnx'
  readonly saturate: boolean
  readonly round: 'up' | 'nearest' | 'down'
}

/** One linear map of the elements on the way of a reorder, with parameters for blocks of the source. */
export interface NativeScaling {
  readonly kind: 'quantize' | 'dequantize' | 'affine'
  readonly from: string
  readonly to: string
  /** How integer codes are made. */
  readonly rules: 'onnx' | 'tmfile'
  readonly saturate: boolean
  /** One for all elements, or one for each block, row-major; as many of one as of the other. */
  readonly scales: Float64Array
  readonly offsets: Float64Array
  /** Elements of a block along each axis of the source, of the slice's shape where there is a slice. */
  readonly blocks: readonly number[]
}

export interface NativePlanDescription {
  /** Of the source: 4, 8, 16, 32, 64 or 128; 2 for elements that are cast and keep their order. */
  readonly elementBits: number
  /** Logical extents of the result, one an axis. */
  readonly shape: readonly number[]
  readonly from: NativeSide
  readonly to: NativeSide
  /** Absent when all of the source is taken. */
  readonly slice?: NativeSlice
  /** In the order in which they are done; `to` is bound to the last one's type. */
  readonly casts?: readonly (NativeCast | NativeScaling)[]
}

/**
 * Memory with the addresses of a tensor's storage, of which only what was filled is resident: the source of a plan
 * whose bytes come through JavaScript range by range.
 */
export interface NativeSparseBuffer {
  readonly byteLength: number
  /** Throws ERR_RANGE; ERR_ARGUMENT while a run reads the buffer, also from `clear`. */
  fill(bytes: Uint8Array, offset: number): void
  /** Gives the memory of all filled ranges back; they read as zeros then. */
  clear(): void
}

/** An immutable reorder plan. Sizes are bytes of the storage of either side. */
export interface NativeReorderPlan {
  readonly sourceBytes: number
  readonly destinationBytes: number
  /** Ranges of the destination begin and end at multiples of this many bytes, or end with it. */
  readonly rangeQuantum: number
  /** About how many bytes the addon holds for the plan. */
  readonly footprint: number
  /** Byte of the source from which the whole destination is one plain copy; absent where something moves. */
  readonly copyOffset?: number
  /**
   * Writes destination bytes `[start, end)` (whole elements; nibble pairs for 4 bit) to `destination`, which
   * has exactly `end - start` bytes; all of it where no range is given. `source` has all `sourceBytes`. From 256 KiB
   * of both on, free threads of the addon help. Throws ERR_ARGUMENT on wrong sizes.
   */
  runSync(
    source: Uint8Array | NativeSparseBuffer,
    destination: Uint8Array,
    start?: number,
    end?: number,
  ): void
  /**
   * As `runSync`, on the addon's own threads. `cancel` is looked at once a tile: a non-zero first element stops.
   * Throws ERR_ARGUMENT also for resizable buffers.
   *
   * Until the promise settles, no buffer given here (or to `runFile`) may be transferred: its memory may move or go
   * while threads write to it, and Node-API can neither hold it nor notice. Shared buffers cannot be transferred.
   */
  run(
    source: Uint8Array | NativeSparseBuffer,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  /**
   * As `run`, with the source `[offset, offset + sourceBytes)` of a file, by reads of the ranges that a tile
   * needs, also where the file is mapped: cut short by somebody, it is ERR_FILE_CHANGED and no signal.
   */
  runFile(
    file: NativeInputFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  runFileSync(
    file: NativeInputFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
  ): void
  /**
   * As `runFile`, into a file: destination bytes `[start, end)` go to `position` on, tile by tile, with one buffer a
   * thread.
   */
  runToFile(
    file: NativeInputFile,
    offset: number,
    output: NativeOutputFile,
    start: number,
    end: number,
    position: number,
    cancel?: Int32Array,
  ): Promise<void>
  /**
   * As `run`, `runFile` and `runToFile`, on a device. A file is read by its descriptor, and a view of its map where
   * the device can use that in place. Throws also ERR_NO_DEVICE, ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD,
   * ERR_DEVICE_LOST, and ERR_UNSUPPORTED for casts of complex numbers.
   */
  runOnDevice(work: NativeDeviceWork): Promise<void>
  /**
   * Least seconds of all rounds, with the data on the device: of the kernel, of the device's own copy of as many bytes,
   * and of the ways from and to pinned memory. For measurements; waits.
   */
  timeOnDevice(
    work: NativeDeviceSettings & { readonly device: number; readonly rounds: number },
  ): NativeDeviceTimes
  /**
   * The source bytes that destination bytes `[start, end)` are made of: pairs of from and to, ascending, apart from
   * each other by more than some KiB (nearer ranges are one).
   */
  sourceRanges(start: number, end: number): Float64Array
  explain(): NativeExplanation
}

/** What a device does differently from what it says of itself. */
export interface NativeDeviceSettings {
  /** Bytes of the largest buffer, in place of what the device allows. */
  readonly mostBytes?: number
  /** False: memory is copied to the device and back also where the two share it. */
  readonly inPlace?: boolean
  /** Destination bytes from which on a plan gets a kernel of its own. */
  readonly ownKernelBytes?: number
  /** For the device's compiler. */
  readonly buildOptions?: string
  /** For tests: slices after which the device counts as lost. */
  readonly loseAfter?: number
}

export interface NativeDeviceWork extends NativeDeviceSettings {
  /** Number in the list of devices. */
  readonly device: number
  readonly source: Uint8Array | NativeSparseBuffer | NativeInputFile
  /** Of the source in a file. */
  readonly offset?: number
  readonly target: Uint8Array | NativeOutputFile
  /** Bytes of the destination. */
  readonly start: number
  readonly end: number
  /** Of destination byte `start` in a file. */
  readonly position?: number
  readonly cancel?: Int32Array
}

export interface NativeDeviceTimes {
  /** What the kernel does, and how: `transpose, tiles`. */
  readonly form: string
  readonly kernel: number
  readonly copy: number
  readonly upload: number
  readonly download: number
}

export interface NativeDevice {
  readonly platform: string
  readonly name: string
  readonly type: 'gpu' | 'cpu' | 'accelerator' | 'other'
  readonly version: string
  readonly driver: string
  readonly memory: number
  readonly largestBuffer: number
  readonly unifiedMemory: boolean
}

/** What was counted of a tensor so far. One job at a time adds to it. */
export interface NativeStatistics {
  /**
   * Counts `count` packed elements (halves, of a complex type), on the addon's own threads. `bytes` has just these, and
   * may not be transferred meanwhile. Throws ERR_ARGUMENT.
   */
  add(bytes: Uint8Array, count: number, cancel?: Int32Array): Promise<void>
  /** As `add`, of the elements at `offset` of a file, which are read part by part. Throws ERR_RANGE, ERR_FILE_CHANGED. */
  addFile(file: NativeInputFile, offset: number, count: number, cancel?: Int32Array): Promise<void>
  /** Throws ERR_ARGUMENT while something is added. */
  result(): NativeStatisticsResult
}

export interface NativeStatisticsResult {
  readonly count: number
  readonly nans: number
  readonly infinities: number
  readonly zeros: number
  /** These are absent where no number is finite. */
  readonly min?: number | bigint
  readonly max?: number | bigint
  readonly mean?: number
  /** Bins of 2^exponent, of which the first begins at `first` times that. */
  readonly histogram?: {
    readonly exponent: number
    readonly first: number
    readonly counts: Float64Array
  }
}

export interface NativeExplanation {
  /** Name from the kernel table, for example `reorder_x32_reference`. */
  readonly kernel: string
  /** Why this kernel was taken. */
  readonly reason: string
  /** `identity`: both storages are equal byte for byte; `view`: the destination is one range of the source. */
  readonly kind: 'identity' | 'view' | 'loop-nest'
  /** Outermost first. `table` marks a node whose source offset comes from a table or from arithmetic, not a stride. */
  readonly nodes: readonly {
    readonly axes: readonly number[]
    readonly count: number
    readonly sourceStride: number | 'table'
    readonly destinationStride: number
    readonly tail: boolean
  }[]
  /** `streaming` stores leave nothing in the caches; they are for what no cache holds. */
  readonly stores: 'cached' | 'streaming'
  /** How a run of the whole destination is cut for as many threads as there are now. */
  readonly cut: 'whole' | 'ranges' | 'loop'
  /** Parts of that cut. */
  readonly parts: number
  /** Threads that run them, the calling one included. */
  readonly threads: number
}

/** A file under construction, which takes its target's place on commit. */
export interface NativeOutputFile {
  /** Writes all of `bytes` at `position`. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Copies a range of another file without passing through JavaScript (`copy_file_range`, then plain copies). */
  copyFrom(
    file: NativeInputFile,
    start: number,
    end: number,
    position: number,
    cancel?: Int32Array,
  ): Promise<void>
  /**
   * Waits for the writes that were announced, then fsync, so that a commit of several files is little more than a
   * rename each. Until it ends, further writes are ERR_CLOSED. A failure takes the file back, as `abort`.
   */
  sync(): Promise<void>
  /**
   * fsync of what is not synced yet, rename over the target, fsync of the folder. Gives disk and descriptor back, also
   * when it fails.
   */
  commit(): Promise<void>
  /** Gives disk and descriptor back as soon as no write uses them. May be called twice, and after commit. */
  abort(): void
}

/** What was in a DLPack capsule: row-major, sub-byte elements packed. */
export interface NativeDlpackTensor {
  readonly bytes: Uint8Array
  readonly dtype: Exclude<Dtype, 'string'>
  readonly shape: readonly number[]
  readonly readOnly: boolean
  /** The memory is nobody else's. */
  readonly copied: boolean
}

export interface NativeAddon {
  /**
   * Opens a regular file. `guard` turns a read beyond the end of a mapped file that was truncated meanwhile into zeros
   * and ERR_FILE_CHANGED, where the process would else be killed by SIGBUS. An empty file has byteLength 0.
   */
  openInput(path: string, options: { readonly mapped: boolean; readonly guard: boolean }): NativeInputFile
  planReorder(description: NativePlanDescription): NativeReorderPlan
  /** Virtual memory only; none is resident before `fill`. Throws ERR_LIMIT when there are no addresses for it. */
  createSparseBuffer(byteLength: number): NativeSparseBuffer
  /** For elements of a fixed size, with a histogram of at most `bins`, 2 to 1024. */
  createStatistics(dtype: string, bins: number): NativeStatistics
  /** Creates the temporary beside `path` and reserves `byteLength` bytes (ENOSPC at once on a full disk). */
  createOutput(path: string, byteLength: number): NativeOutputFile
  /** Threads of the addon's own pool: from affinity and cgroup quota, or TILEWORK_THREADS. */
  threads(): number
  setThreads(count: number): void
  /** Bytes of a map are shared where they are aligned for their type, all others copied; `legacy` always copies. */
  exportDlpack(bytes: Uint8Array, dtype: string, shape: readonly number[], legacy: boolean): DlpackCapsule
  /** Throws ERR_ARGUMENT for what is no capsule or is empty, ERR_UNSUPPORTED, ERR_RANK, ERR_OVERFLOW. */
  importDlpack(capsule: object, maxBytes: number): NativeDlpackTensor
  /** Forces (false) or allows (true) external buffers: the switch behind TILEWORK_NO_EXTERNAL_BUFFERS=1. */
  setExternalBuffers(allowed: boolean): void
  /**
   * Asks for huge pages under memory of 2 MiB or more that was just allocated and is about to be written all over:
   * else the first write into each 4 KiB is a fault, and those take longer than any work on the bytes.
   */
  preparePages(bytes: Uint8Array): void
  /** Mappings that are still mapped in this environment; for tests of their life. */
  liveMappings(): number
  /** The footprints of all plans of this environment that are not freed yet; for tests of their life. */
  heldPlanBytes(): number
  /**
   * Tensors of a message of ONNX with a known type, a shape, a name and exactly the bytes in the file that they need, from
   * the field at `start` on, as far as they stand behind each other; at most `most`, fewer where headers are long. Of what
   * is not so nothing is said. Throws ERR_RANGE, ERR_CLOSED, ERR_FILE_CHANGED, a system error.
   */
  plainTensors(
    file: NativeInputFile,
    rules: NativePlainTensorRules,
    start: number,
    end: number,
    most: number,
  ): NativePlainTensors
  /** OpenCL devices, and why the library could not be loaded where there is none. */
  devices(): { readonly devices: readonly NativeDevice[]; readonly reason: string }
  cpu(): { readonly architecture: string; readonly features: readonly string[] }
}
