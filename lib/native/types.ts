/**
 * The contract of the addon: each interface is one object that `binding/` makes or reads, and its comments state what the C++
 * side guarantees. Byte and element counts are exact numbers up to 2^53 - 1. Errors are thrown as objects with a `code`,
 * which `systemError` turns into a TileworkError.
 */
import type { BlockDtype } from '../dtype/block_types.js'
import type { Dtype } from '../dtype/dtypes.js'

/** An object that owns a DLPack tensor until an addon takes the tensor or the object is garbage-collected. */
export interface DlpackCapsule {
  /** The capsule names of Python: `dltensor_versioned` holds a `DLManagedTensorVersioned`, `dltensor` a `DLManagedTensor`. */
  readonly name: 'dltensor_versioned' | 'dltensor'
}

/**
 * A file opened for reading. When mapped, its views share memory with the page cache; the mapping is private and writable, so
 * a stray store changes a copy, never the file. When not mapped, every read copies through the descriptor.
 */
export interface NativeInputFile {
  readonly byteLength: number
  readonly isMapped: boolean
  /**
   * A view of bytes `[start, end)` of the mapping; a copy where the runtime refuses external buffers. The mapping stays until
   * its last view is collected. Throws ERR_CLOSED, ERR_RANGE, ERR_FILE_CHANGED; ERR_ARGUMENT for a file that is not mapped.
   */
  view(start: number, end: number): Uint8Array
  /**
   * Fills `target` with the bytes from offset `start` through the descriptor, so a truncated file is an error and not SIGBUS.
   * Throws ERR_CLOSED, ERR_RANGE, ERR_FILE_CHANGED, a system error.
   */
  read(start: number, target: Uint8Array): Promise<void>
  /** As `read`, on the calling thread. */
  readSync(start: number, target: Uint8Array): void
  /** Throws ERR_FILE_CHANGED if the size or modification time changed since the file was opened. */
  verifyUnchanged(): void
  /** Ends use through this object; the mapping is unmapped after its last user. `revoke` also detaches all views. */
  close(revoke: boolean): void
}

/** Protobuf field numbers of ONNX that `plainTensors` reads. They come from the schema in TypeScript. */
export interface NativePlainTensorRules {
  /** The repeated TensorProto field of the enclosing message. */
  readonly list: number
  readonly dims: number
  readonly dataType: number
  readonly name: number
  readonly rawData: number
  readonly docString: number
  readonly dataLocation: number
  /** Bits of an element, indexed by TensorProto.DataType; 0 for types that are not plain. */
  readonly elementBits: Uint8Array
  /** Tensors of more axes are not plain. */
  readonly maxAxes: number
}

/** A run of consecutive plain tensors of one message. */
export interface NativePlainTensors {
  /** File offset of the first field that is not part of the run. */
  readonly position: number
  /** Bytes that were read from the file. */
  readonly bytesRead: number
  /** Sum of the value bytes of all tensors. */
  readonly valueBytes: number
  /** Three offsets per tensor: start of its values and end of its message in the file, end of its header in `headers`. */
  readonly offsets: Float64Array
  /** The fields of all tensors without their values, byte for byte, one tensor after the other. */
  readonly headers: Uint8Array
}

/** One digit of a layout: `floor(padded index / weight) mod radix`. */
export interface NativeDigit {
  /** Axis numbers; several axes are fused into one row-major index over their padded extents. */
  readonly axes: readonly number[]
  /** Number of values. */
  readonly radix: number
  /** Index distance between two values; the weights of an axis form a mixed radix. */
  readonly weight: number
}

/** A digit list that is valid for a part of the tensor: `lo <= padded index of axis < hi`. */
export interface NativePiece {
  readonly axis: number
  readonly lo: number
  readonly hi: number
  /** Outermost first. Horner's rule over the list gives the element offset; the product of the radices is the slot count. */
  readonly digits: readonly NativeDigit[]
}

/** The source or the destination of a reorder: a layout bound to a shape. */
export interface NativeSide {
  /** Explicit padding before the first element, one count per axis. */
  readonly lower: readonly number[]
  /** Explicit padding after the last element, one count per axis. */
  readonly upper: readonly number[]
  /** Pieces that cover one axis without gaps; usually one, with `hi` = Number.MAX_SAFE_INTEGER. */
  readonly pieces: readonly NativePiece[]
  /** Storage elements, holes included. */
  readonly elements: number
}

/**
 * The part of a source that a plan reads: along each axis the source's logical index is `start + step * i`, where `i` runs
 * over the extent of the plan's shape.
 */
export interface NativeSlice {
  /** Logical extents of the whole source, one per axis; `from` is bound to them. */
  readonly shape: readonly number[]
  readonly start: readonly number[]
  /** Not 0; a negative step walks backwards. */
  readonly step: readonly number[]
}

/** An element conversion that a reorder applies; `cast` documents the options. */
export interface NativeCast {
  readonly from: string
  readonly to: string
  readonly mode: 'spec' | 'onnx'
  readonly saturate: boolean
  readonly round: 'up' | 'nearest' | 'down'
}

/** A linear map that a reorder applies to the elements, with one scale and offset per block of the source. */
export interface NativeScaling {
  readonly kind: 'quantize' | 'dequantize' | 'affine'
  readonly from: string
  readonly to: string
  /** Whose rounding makes integer codes. */
  readonly rules: 'onnx' | 'tmfile'
  readonly saturate: boolean
  /** One number for all elements, or one per block in row-major order. Equal lengths. */
  readonly scales: Float64Array
  readonly offsets: Float64Array
  /** Extent of a block along each axis of the whole source. */
  readonly blocks: readonly number[]
}

/** How blocks of numbers become codes. */
export interface NativeBlockRule {
  readonly formula: 'matmulnbits' | 'dequantizelinear' | 'gather'
  readonly bits: 2 | 4 | 8
  readonly symmetric: boolean
  /** Whether scales are rounded to float16 before they are used. */
  readonly halfScales: boolean
}

/** What a plan joins. */
export interface NativePlanDescription {
  /** Bits of a source element: 4, 8, 16, 32, 64 or 128; 2 for elements that are cast and keep their order. */
  readonly elementBits: number
  /** Logical extents of the result, one per axis. */
  readonly shape: readonly number[]
  readonly from: NativeSide
  readonly to: NativeSide
  /** Absent when the plan reads the whole source. */
  readonly slice?: NativeSlice
  /** Applied in this order; `to` is bound to the element type of the last. */
  readonly casts?: readonly (NativeCast | NativeScaling)[]
}

/**
 * An address range as large as a tensor's storage, of which only filled pages are resident. It is the source of a plan whose
 * bytes arrive through JavaScript range by range.
 */
export interface NativeSparseBuffer {
  readonly byteLength: number
  /** Copies `bytes` to `offset`. Throws ERR_RANGE; ERR_ARGUMENT while a run reads the buffer. */
  fill(bytes: Uint8Array, offset: number): void
  /** Releases the filled pages, which then read as zeros. Throws ERR_ARGUMENT while a run reads the buffer. */
  clear(): void
}

/** An immutable reorder plan; may run many times, also concurrently. */
export interface NativeReorderPlan {
  /** Storage bytes of the source. */
  readonly sourceBytes: number
  /** Storage bytes of the destination. */
  readonly destinationBytes: number
  /** Destination ranges start and end at multiples of this many bytes, or end at `destinationBytes`. */
  readonly rangeQuantum: number
  /** Approximate bytes of native memory that the plan holds. */
  readonly footprint: number
  /**
   * Source offset from which the whole destination is one plain copy; absent where elements are moved or converted, or leave
   * bits of the last byte unused.
   */
  readonly copyOffset?: number
  /**
   * Writes destination bytes `[start, end)` to `destination`, which has exactly `end - start` bytes; without a range, all of
   * the destination. `source` has all `sourceBytes`. From 256 KiB of both together, idle threads of the addon help.
   * `resultBytes` are those of a larger result that the destination is a part of, which decides whether stores bypass the
   * caches. Throws ERR_ARGUMENT for wrong sizes.
   */
  runSync(
    source: Uint8Array | NativeSparseBuffer,
    destination: Uint8Array,
    start?: number,
    end?: number,
    resultBytes?: number,
  ): void
  /**
   * As `runSync`, on the addon's own threads. `cancel` is polled once per tile; a non-zero first element ends the run with
   * unspecified destination bytes. Throws ERR_ARGUMENT also for resizable buffers.
   *
   * Until the promise settles, no buffer passed here or to `runFile` may be transferred: threads still write to its memory,
   * and Node-API can neither pin the memory nor notice. Shared buffers cannot be transferred.
   */
  run(
    source: Uint8Array | NativeSparseBuffer,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  /**
   * As `run`, with bytes `[offset, offset + sourceBytes)` of a file as the source. Reads only the ranges that a tile needs,
   * through the descriptor even where the file is mapped: a truncated file is ERR_FILE_CHANGED and not SIGBUS.
   */
  runFile(
    file: NativeInputFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  /** As `runFile`, on the calling thread. */
  runFileSync(
    file: NativeInputFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
  ): void
  /** As `runFile`, into a file: writes destination bytes `[start, end)` at `position`, tile by tile, one buffer per thread. */
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
   * As `run`, `runFile` and `runToFile`, on an OpenCL device. Throws also ERR_NO_DEVICE, ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD,
   * ERR_DEVICE_LOST, and ERR_UNSUPPORTED for casts of complex numbers.
   */
  runOnDevice(work: NativeDeviceWork): Promise<void>
  /** Fastest of `rounds` runs, in seconds, with the data on the device. For benchmarks; blocks the thread. */
  timeOnDevice(
    work: NativeDeviceSettings & { readonly device: number; readonly rounds: number },
  ): NativeDeviceTimes
  /**
   * The source bytes that destination bytes `[start, end)` depend on: pairs of start and end offsets, ascending. Ranges less
   * than some KiB apart are merged.
   */
  sourceRanges(start: number, end: number): Float64Array
  explain(): NativeExplanation
}

/** Overrides of what a device reports of itself. */
export interface NativeDeviceSettings {
  /** Bytes of the largest buffer; by default the device's own limit. */
  readonly maxBytes?: number
  /** False copies memory to the device and back even where host and device share it. */
  readonly inPlace?: boolean
  /** Destination bytes from which a plan gets a kernel compiled for it alone. */
  readonly ownKernelBytes?: number
  /** Options for the device's compiler. */
  readonly buildOptions?: string
  /** For tests: number of slices after which the device counts as lost. */
  readonly loseAfter?: number
}

/** A run on a device. */
export interface NativeDeviceWork extends NativeDeviceSettings {
  /** Index in the list of devices. */
  readonly device: number
  readonly source: Uint8Array | NativeSparseBuffer | NativeInputFile
  /** Offset of the source in its file. */
  readonly offset?: number
  readonly target: Uint8Array | NativeOutputFile
  /** Destination bytes `[start, end)`. */
  readonly start: number
  readonly end: number
  /** Offset of destination byte `start` in the output file. */
  readonly position?: number
  /** As in `run`. */
  readonly cancel?: Int32Array
}

/** Seconds of a run on a device. */
export interface NativeDeviceTimes {
  /** The kernel's operation and strategy, for example `transpose, tiles`. */
  readonly form: string
  readonly kernel: number
  /** The device's own copy of as many bytes, for comparison. */
  readonly copy: number
  /** From pinned host memory to the device. */
  readonly upload: number
  /** From the device to pinned host memory. */
  readonly download: number
}

/** An OpenCL device as its driver reports it. */
export interface NativeDevice {
  readonly platform: string
  readonly name: string
  readonly type: 'gpu' | 'cpu' | 'accelerator' | 'other'
  readonly version: string
  readonly driver: string
  /** Bytes of the device's memory. */
  readonly memory: number
  /** Bytes of the largest single allocation. */
  readonly largestBuffer: number
  /** True when host and device share memory. */
  readonly unifiedMemory: boolean
}

/** Running statistics of a tensor. One job at a time adds to them. */
export interface NativeStatistics {
  /**
   * Adds `count` packed elements (of a complex type, halves), on the addon's own threads. `bytes` holds exactly these and must
   * not be transferred until the promise settles. Throws ERR_ARGUMENT.
   */
  add(bytes: Uint8Array, count: number, cancel?: Int32Array): Promise<void>
  /** As `add`, with the elements at `offset` of a file, read in windows. Throws ERR_RANGE, ERR_FILE_CHANGED. */
  addFile(file: NativeInputFile, offset: number, count: number, cancel?: Int32Array): Promise<void>
  /** Throws ERR_ARGUMENT while a job adds elements. */
  result(): NativeStatisticsResult
}

/** Statistics of all elements that were added. */
export interface NativeStatisticsResult {
  readonly count: number
  readonly nans: number
  readonly infinities: number
  readonly zeros: number
  /** Of the finite numbers; absent, as `max`, `mean` and `histogram`, where there is none. */
  readonly min?: number | bigint
  readonly max?: number | bigint
  readonly mean?: number
  /** Bins of width 2^exponent; the first starts at `first * 2^exponent`. */
  readonly histogram?: {
    readonly exponent: number
    readonly first: number
    readonly counts: Float64Array
  }
}

/** A running comparison of two tensors, the first of which is the reference. One job at a time works on it. */
export interface NativeDifferences {
  /**
   * Compares `count` packed elements that start at byte offsets of both sides, on the addon's own threads. Bytes must not be
   * transferred until the promise settles. Throws ERR_ARGUMENT, ERR_RANGE, ERR_FILE_CHANGED.
   */
  add(
    reference: NativeBytes,
    referenceOffset: number,
    other: NativeBytes,
    otherOffset: number,
    count: number,
    cancel?: Int32Array,
  ): Promise<void>
  /** As `add`, for bytes: only `hasEqualBytes` of the result says what was found, and nothing is read after the first difference. */
  compareBytes(
    reference: NativeBytes,
    referenceOffset: number,
    other: NativeBytes,
    otherOffset: number,
    byteLength: number,
    cancel?: Int32Array,
  ): Promise<void>
  /** Throws ERR_ARGUMENT while a job runs. */
  result(): NativeDifferencesResult
}

/** Bytes, or a file that is read by ranges. */
export type NativeBytes = Uint8Array | NativeInputFile

/** What was found so far; native/dtype/differences.h defines every field. Indices are -1 where there is no such pair. */
export interface NativeDifferencesResult {
  readonly pairs: number
  readonly different: number
  readonly beyond: number
  readonly referenceNans: number
  readonly otherNans: number
  readonly bothNans: number
  readonly firstDifferent: number
  readonly firstBeyond: number
  readonly worst: number
  readonly worstRelative: number
  readonly largestError: number
  readonly largestRelativeError: number
  readonly meanError: number
  readonly sqnr: number
  readonly cosine: number
  readonly hasEqualBits: boolean
  readonly hasEqualBytes: boolean
}

/** How a plan runs. */
export interface NativeExplanation {
  /** Name from the kernel table, for example `reorder_tiles_avx2`. */
  readonly kernel: string
  /** Why the planner chose this kernel. */
  readonly reason: string
  /** `identity`: both storages have equal bytes; `view`: the destination is one range of the source. */
  readonly kind: 'identity' | 'view' | 'loop-nest'
  /** Loops, outermost first. `table` marks a loop whose source offsets have no constant stride. */
  readonly nodes: readonly {
    readonly axes: readonly number[]
    readonly count: number
    readonly sourceStride: number | 'table'
    readonly destinationStride: number
    readonly tail: boolean
  }[]
  /**
   * The ways in which leaves move elements, the largest share of the destination first, as a run of all of it would take
   * them, after everything that is decided while it runs. None where the destination is a copy. Of very many tiles the
   * first ones are asked.
   */
  readonly ways: readonly {
    /** A row of `native/reorder/leaf/leaves.def`, for example `streamed blocks`. */
    readonly name: string
    /** When it is taken. */
    readonly condition: string
    /** From 0 to 1. */
    readonly share: number
    /**
     * The rate of this way in the benchmark, as a share of the rate of a plain copy of as many bytes: geometric mean of
     * the cases in which it moves most, on the machine that `waysMeasuredOn` names. Absent where there is no such case.
     */
    readonly ofCopy?: number
    /** Units are copied one by one, which is the slowest way. */
    readonly copiesUnitsAlone: boolean
  }[]
  /** The processor, kernels and day of `ofCopy`. */
  readonly waysMeasuredOn: string
  /** `streaming` stores bypass the caches; for sources and destinations that together are larger than these. */
  readonly stores: 'cached' | 'streaming'
  /** The numbers by which they were chosen. */
  readonly storesReason: string
  /** How a run of the whole destination is divided among the current number of threads. */
  readonly cut: 'whole' | 'ranges' | 'loop'
  /** Number of parts of that division. */
  readonly parts: number
  /** Threads that run the parts, the calling thread included. */
  readonly threads: number
}

/** A file under construction. It replaces its target on `commit`, atomically; until then the target is untouched. */
export interface NativeOutputFile {
  /** Writes all of `bytes` at offset `position`. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Copies bytes `[start, end)` of another file inside the kernel (`copy_file_range`), or by plain reads and writes. */
  copyFrom(
    file: NativeInputFile,
    start: number,
    end: number,
    position: number,
    cancel?: Int32Array,
  ): Promise<void>
  /**
   * Waits for pending writes, then calls fsync, so that committing several files takes little more than one rename each.
   * Meanwhile further writes throw ERR_CLOSED. A failure discards the file, as `abort` does.
   */
  sync(): Promise<void>
  /** Syncs what is not synced, renames the file over its target and syncs the folder. Frees disk and descriptor on failure. */
  commit(): Promise<void>
  /** The file under its name. After `sync` or `commit`; throws ERR_CLOSED after `abort`. */
  identity(): NativeFileIdentity
  /** Frees disk and descriptor once no write uses them. May be called twice, and after `commit`. */
  abort(): void
}

/** Identifies a file with its content: renaming and linking leave all four numbers as they are. */
export interface NativeFileIdentity {
  readonly device: bigint
  readonly inode: bigint
  readonly size: bigint
  /** Time of the last change in nanoseconds since 1970. */
  readonly modified: bigint
}

export interface NativeInputOptions {
  readonly mapped: boolean
  readonly guard: boolean
}

/** The content of a DLPack capsule in row-major order, sub-byte elements packed. */
export interface NativeDlpackTensor {
  readonly bytes: Uint8Array
  readonly dtype: Exclude<Dtype, 'string'>
  readonly shape: readonly number[]
  readonly readOnly: boolean
  /** True when `bytes` are a copy; otherwise the exporter's memory is shared. */
  readonly copied: boolean
}

/** Held until it is released, collected, or the process ends. */
export interface NativeLock {
  release(): void
}

export interface NativeBox {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** What an image plan computes; `native/image/image_plan.h` has the meaning of each field. */
export interface NativeImageDescription {
  readonly source: {
    readonly format: 'interleaved' | 'planar' | 'nv12' | 'nv21' | 'i420' | 'yv12'
    readonly width: number
    readonly height: number
    /** 1 to 4; 3 for formats of luma and chroma. */
    readonly channels: number
    readonly sampleBytes: 1 | 2
    readonly colours: 'none' | 'grey' | 'premultiply' | 'background' | 'whiteFloat'
    readonly background: readonly number[]
  }
  readonly rule: 'pillow' | 'pillow12' | 'torchvision' | 'opencv-linear' | 'opencv-nearest' | 'opencv-area'
  readonly filter: 'nearest' | 'box' | 'bilinear' | 'hamming' | 'bicubic' | 'lanczos' | 'mks2013' | 'mks2021'
  readonly resizedWidth: number
  readonly resizedHeight: number
  /** What is seen of the resized image. */
  readonly crop: NativeBox
  /** The result, and where the crop is in it. */
  readonly width: number
  readonly height: number
  readonly left: number
  readonly top: number
  /** Around the crop, up to this box, stand `innerCodes`; around the box `outerCodes`. */
  readonly inner: NativeBox
  /** The sample that each channel of the result shows. */
  readonly channels: readonly number[]
  readonly elementBytes: number
  /** Elements: for each channel 256, or 65536 for samples of 2 bytes. */
  readonly tables: Uint8Array
  readonly innerCodes: Uint8Array
  readonly outerCodes: Uint8Array
  readonly planar: boolean
}

/** Computes rows of a model's input from the pixels of images of one size. */
export interface NativeImagePlan {
  /** Approximate bytes of native memory that the plan holds. */
  readonly footprint: number
  /**
   * Computes rows `[start, end)` on the calling thread and free threads of the pool. `target` has rows `[targetStart, targetEnd)`
   * of each channel. Throws ERR_ARGUMENT, also for elements that are not aligned.
   */
  runSync(
    source: Uint8Array,
    target: Uint8Array,
    targetStart: number,
    targetEnd: number,
    start: number,
    end: number,
  ): void
}

/** The path of a folder; or such a path and a relative one below it, out of which no link leads. */
export type NativeFolder = string | readonly [root: string, inside: string]

/**
 * What an output may replace: `any` file, or none (`new`: the commit throws EEXIST where the name is taken by then). `own` replaces
 * any file and takes over none of its attributes: only this user may use it.
 */
export type NativeTarget = 'any' | 'new' | 'own'

/** What the addon exports. */
export interface NativeAddon {
  /**
   * Opens a regular file; an empty one has byteLength 0. With `guard`, a read beyond the end of a mapped file that was
   * truncated gives zeros and ERR_FILE_CHANGED; without it, the system kills the process with SIGBUS.
   */
  openInput(path: string, options: NativeInputOptions): NativeInputFile
  /**
   * As `openInput`, for a relative name. No link leads out of the folder, whatever others do to it meanwhile: ERR_PATH_ESCAPE.
   * With `isSole` neither does a hard link; ERR_FILE_CHANGED where the name changes too often to tell.
   */
  openInputBelow(
    folder: NativeFolder,
    name: string,
    options: NativeInputOptions & { readonly isSole: boolean },
  ): NativeInputFile
  planReorder(description: NativePlanDescription): NativeReorderPlan
  /** Throws ERR_ARGUMENT for numbers that do not fit together, ERR_LIMIT for weights or kept rows of too many bytes. */
  planImage(description: NativeImageDescription): NativeImagePlan
  /** Reserves addresses only; no page is resident before `fill`. Throws ERR_LIMIT when the address space has no room. */
  createSparseBuffer(byteLength: number): NativeSparseBuffer
  /** Statistics of elements of a fixed size, with a histogram of at most `bins` bins (2 to 1024). */
  createStatistics(dtype: string, bins: number): NativeStatistics
  /** A comparison of elements of two types. Throws ERR_ARGUMENT for a tolerance that is negative or not finite. */
  createDifferences(reference: string, other: string, absolute: number, relative: number): NativeDifferences
  /**
   * Extends the minimum and maximum of each block along rows by consecutive numbers, the first of which has the row-major index
   * `first`; NaN is ignored. The arrays are the bytes of Float32Arrays. Throws ERR_ARGUMENT, ERR_OVERFLOW.
   */
  extendBlockRanges(
    numbers: Uint8Array,
    first: number,
    rowLength: number,
    blockLength: number,
    min: Uint8Array,
    max: Uint8Array,
  ): void
  /**
   * Adds whole rows of a matrix, the first of which is `firstRow`, to a coarser grid: row r and column c belong to cell
   * `firstCell + floor(r / rowsPerCell) * cellStride + floor(c / columnsPerCell)`. `numbers` and `cells` are the bytes of
   * Float64Arrays; a cell has the minimum, maximum, sum and count of its finite numbers, and in `marks` a byte: 1 for NaN, 2 for
   * infinity, 4 for -infinity. Throws ERR_ARGUMENT, ERR_OVERFLOW.
   */
  poolCells(
    numbers: Uint8Array,
    columns: number,
    firstRow: number,
    rowsPerCell: number,
    columnsPerCell: number,
    firstCell: number,
    cellStride: number,
    cells: Uint8Array,
    marks: Uint8Array,
  ): void
  /**
   * Codes of a row-major matrix in blocks that start at its first row (`down`) or column; `native/dtype/block_codes.h` has the
   * formulas. With `blocks`, codes are [lines, blocks, bytes of a block], and the numbers start with block `first`; otherwise
   * they keep the order of the numbers, packed without gaps. Scales and zero points, one byte each, are [lines, blocks], or
   * [blocks, columns] for codes in order of numbers down. `numbers` and `scales` are the bytes of Float32Arrays; `zeros` is not
   * written where symmetric. Throws ERR_ARGUMENT, ERR_OVERFLOW.
   */
  quantizeBlocks(
    numbers: Uint8Array,
    rule: NativeBlockRule,
    matrix: {
      readonly rows: number
      readonly columns: number
      readonly blockSize: number
      readonly down: boolean
    },
    target: {
      readonly codes: Uint8Array
      readonly scales: Uint8Array
      readonly zeros: Uint8Array
      readonly blocks?: number
      readonly first?: number
    },
  ): void
  /**
   * Moves magnitudes of finite numbers other than 0 into `[min, max]`, in place, and counts those that were reduced and raised.
   * `numbers` are the bytes of a Float32Array. Throws ERR_ARGUMENT.
   */
  clipMagnitudes(
    numbers: Uint8Array,
    min: number,
    max: number,
  ): { readonly clipped: number; readonly lifted: number }
  /**
   * The 4-bit codes of bitsandbytes, two per byte, the first in the upper bits, and the greatest magnitude of each block.
   * `numbers` and `magnitudes` are the bytes of Float32Arrays. Throws ERR_ARGUMENT.
   */
  quantizeBnb4(
    numbers: Uint8Array,
    kind: 'nf4' | 'fp4',
    blockSize: number,
    codes: Uint8Array,
    magnitudes: Uint8Array,
  ): void
  /**
   * The numbers of whole blocks of a block type as float32, float16 or bfloat16; `target` has exactly their size.
   * `resultBytes` are those of the result that the target is a part of: one that exceeds the caches is written past them.
   * Throws ERR_ARGUMENT, ERR_DTYPE.
   */
  decodeBlocks(
    type: BlockDtype,
    blocks: Uint8Array,
    dtype: string,
    target: Uint8Array,
    resultBytes: number,
  ): void
  /**
   * Quantizes numbers, the bytes of a Float32Array, to whole blocks. Returns the index of the first number that its block cannot
   * hold, because it is not finite or too large; -1 where there is none. Throws ERR_ARGUMENT; ERR_DTYPE for a type that is not
   * quantized.
   */
  encodeBlocks(type: BlockDtype, numbers: Uint8Array, blocks: Uint8Array): number
  /** Name of the kernel that `decodeBlocks` runs. */
  blockKernel(type: BlockDtype): string
  /** Creates an unnamed or temporary file beside `path` and reserves `byteLength` bytes: a full disk is ENOSPC at once. */
  createOutput(path: string, byteLength: number): NativeOutputFile
  /**
   * As `createOutput`, for a relative name. Throws ERR_PATH_ESCAPE as `openInputBelow`. A link of that name is itself replaced.
   */
  createOutputBelow(
    folder: NativeFolder,
    name: string,
    byteLength: number,
    target: NativeTarget,
  ): NativeOutputFile
  /** Creates the folders of the second path that do not exist. Throws ERR_PATH_ESCAPE. */
  createFolders(folder: NativeFolder): void
  /** All paths that `createOutput` may create or replace: the file that links lead to first, then temporary files. */
  outputPaths(path: string): readonly string[]
  /** Removes a file below a folder if it is regular, without further names and, with an identity, still this one. */
  removeBelow(folder: NativeFolder, name: string, identity: NativeFileIdentity | undefined): boolean
  /**
   * The content of a regular file of this user with a single name, which nobody else may write to; undefined for any other, for
   * one of more than `mostBytes`, and where it cannot be read. A link is not followed.
   */
  readOwnFile(folder: NativeFolder, name: string, mostBytes: number): Uint8Array | undefined
  /** Takes the lock of a folder if it is free. `unknown` where the folder or its file system has no locks. */
  tryLock(folder: NativeFolder): NativeLock | 'busy' | 'unknown'
  /** Threads of the addon's pool: from CPU affinity and cgroup quota, or TILEWORK_THREADS, or `setThreads`. */
  threads(): number
  setThreads(count: number): void
  /** Shares bytes of a mapping that are aligned for their type and copies all others. `legacy` always copies. */
  exportDlpack(bytes: Uint8Array, dtype: string, shape: readonly number[], legacy: boolean): DlpackCapsule
  /**
   * Takes the tensor out of a capsule. Throws ERR_ARGUMENT for an object that is not a capsule or is empty, ERR_UNSUPPORTED,
   * ERR_RANK, ERR_OVERFLOW; ERR_LIMIT for repeated elements of more than `maxBytes`.
   */
  importDlpack(capsule: object, maxBytes: number): NativeDlpackTensor
  /** Forbids (false) or allows (true) external buffers; TILEWORK_NO_EXTERNAL_BUFFERS=1 sets the initial state. */
  setExternalBuffers(allowed: boolean): void
  /**
   * Requests huge pages for freshly allocated memory of 2 MiB or more that is about to be overwritten. Otherwise the first
   * write to each 4 KiB page faults, which takes longer than the work on the bytes.
   */
  preparePages(bytes: Uint8Array): void
  /**
   * Copies rows of `rowBytes` bytes that follow each other in `source` to `target` at `offset`, `offset + stride`, and so on.
   * Throws ERR_ARGUMENT where they do not lie in the target.
   */
  placeRows(target: Uint8Array, offset: number, stride: number, source: Uint8Array, rowBytes: number): void
  /** Number of mappings of this environment that are not unmapped yet; for tests of their lifetime. */
  liveMappings(): number
  /** Sum of the footprints of all plans of this environment that are not freed yet; for tests of their lifetime. */
  heldPlanBytes(): number
  /**
   * Reads the run of plain tensors that starts with the ONNX field at `start`: tensors with a known element type, a shape, a
   * name and exactly the value bytes that they need. Ends at the first other field, after `maxTensors` tensors, or earlier
   * where headers are long. Throws ERR_RANGE, ERR_CLOSED, ERR_FILE_CHANGED, a system error.
   */
  plainTensors(
    file: NativeInputFile,
    rules: NativePlainTensorRules,
    start: number,
    end: number,
    maxTensors: number,
  ): NativePlainTensors
  /** OpenCL devices; where there is none, `reason` says why the OpenCL library could not be loaded. */
  devices(): { readonly devices: readonly NativeDevice[]; readonly reason: string }
  /** Architecture and instruction set extensions. Kernels use at most the instruction set `isa`; see TILEWORK_MAX_ISA. */
  cpu(): { readonly architecture: string; readonly features: readonly string[]; readonly isa: string }
  /** Every code that the addon can report, beside the names of system errors. */
  readonly errorCodes: readonly string[]
}
