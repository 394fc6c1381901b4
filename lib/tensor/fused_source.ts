/**
 * Computes ranges of a fused tensor's storage from the storage of its base. The addon reads files and memory directly. From any
 * other source, only the ranges that a tile of the result needs are fetched, so a tensor of any size takes bounded memory.
 */
import { asyncOnlyError, checkRange } from '../bytes/check_range.js'
import { depthAbove } from '../bytes/depth.js'
import { isPinned } from '../bytes/fill_memory.js'
import { MemorySource } from '../bytes/memory.js'
import { nativeFileOf } from '../bytes/native_file.js'
import { inSlices, SLICE_BYTES } from '../bytes/slices.js'
import type { ByteRange, ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { DevicePlan, type PlanRunner } from '../device/device_plan.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import type { LayoutStorage } from '../layout/layout.js'
import type { JoinedLayouts } from '../layout/plan.js'
import { native } from '../native/addon.js'
import type { NativeInputFile, NativeReorderPlan, NativeSparseBuffer } from '../native/types.js'
import type { DenseTensor } from './tensor.js'

/** Result bytes per tile where the source is fetched through JavaScript. */
const TILE_BYTES = 4 * 1024 * 1024
/** Source bytes that may be fetched for one tile; a tile that needs more is halved. */
const MAX_FETCHED_BYTES = 16 * 1024 * 1024

/** A plan and the range of a file that it reads. */
export interface FromFile {
  readonly plan: PlanRunner
  readonly file: NativeInputFile
  /** Names the tensor in errors. */
  readonly label: string
  /** File offset of the plan's source. */
  readonly offset: number
}

/** The tensor that a fused source reads: its storage is a range of a source. */
export interface FusedBase extends Pick<DenseTensor, 'name' | 'dtype' | 'bytes' | 'bytesSync'> {
  readonly source: ByteSource
  /** Byte offset of the storage in `source`. */
  readonly start: number
}

export class FusedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** See `depthAbove`. */
  readonly depth: number
  readonly #base: FusedBase
  /** Makes its plan with the first byte that is requested. */
  readonly #joined: JoinedLayouts
  readonly #dtype: Dtype
  readonly #device: string | undefined
  #devicePlan: DevicePlan | undefined

  /**
   * @param dtype - element type of the result
   * @param device - computes asynchronous reads; by default, and for synchronous reads, the CPU computes
   * @throws TileworkError ERR_LIMIT for too many lazy tensors on top of each other
   */
  constructor(base: FusedBase, joined: JoinedLayouts, dtype: Dtype = base.dtype, device?: string) {
    this.depth = depthAbove([base.source])
    this.#base = base
    this.#joined = joined
    this.#device = device
    this.#dtype = dtype
    const { layout, storage } = joined.to
    this.byteLength = storage.byteLength
    this.label = `tensor "${base.name}" as ${layout.name}`
  }

  /** See `fillMemory`: true over memory that its owner may transfer, unless a device computes. */
  get fillsOnThread(): boolean {
    const { source } = this.#base
    return this.#device === undefined && source instanceof MemorySource && !isPinned(this.#base.bytesSync())
  }

  get #plan(): NativeReorderPlan {
    return this.#joined.plan
  }

  /** The plan itself, or what runs it on a device. */
  get #runner(): PlanRunner {
    if (this.#device === undefined) return this.#plan
    this.#devicePlan ??= new DevicePlan(this.#plan, this.#device)
    return this.#devicePlan
  }

  /** Present only where the storage is a range of a map: computed bytes have memory of their own. */
  get view(): ByteSource['view'] {
    const { stored } = this
    if (!stored?.source.view) return undefined
    return (start, end) => stored.source.view!(stored.start + start, stored.start + end)
  }

  /** The range of the base's source that equals the whole storage; undefined where the storage must be computed. */
  get stored(): { readonly source: ByteSource; readonly start: number } | undefined {
    const { copyOffset } = this.#plan
    if (copyOffset === undefined) return undefined
    return { source: this.#base.source, start: this.#base.start + copyOffset }
  }

  /** What the addon needs to compute from file to file; undefined where the base is in no file. */
  get fromFile(): FromFile | undefined {
    const file = nativeFileOf(this.#base.source)
    return file && { plan: this.#runner, file, label: this.label, offset: this.#base.start }
  }

  /**
   * A chunk size near `bytes` for computing the result in parts: a whole number of iterations of an outer loop over the
   * destination. A cut inside an iteration would split one long inner loop into two short ones.
   */
  chunkBytes(bytes: number): number {
    const quantum = this.#plan.rangeQuantum
    const sizes = iterationBytesOf(this.#joined.to.storage, DTYPES[this.#dtype].bits)
    const iteration = sizes.find((size) => size <= bytes && size % quantum === 0) ?? bytes - (bytes % quantum)
    return Math.max(1, Math.floor(bytes / iteration)) * iteration
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const { stored } = this
    if (stored) return stored.source.read(stored.start + start, stored.start + end)
    const { from, to } = this.#wholeElements(start, end)
    const bytes = unfilledBytes(to - from)
    await this.#fill(from, bytes)
    return bytes.subarray(start - from, end - from)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    const { stored } = this
    if (stored) {
      if (!stored.source.readSync) throw asyncOnlyError(stored.source.label)
      return stored.source.readSync(stored.start + start, stored.start + end)
    }
    const { from, to } = this.#wholeElements(start, end)
    const bytes = unfilledBytes(to - from)
    systemError.wrap(this.label, () => this.#fillSync(from, bytes))
    return bytes.byteLength === end - start ? bytes : bytes.subarray(start - from, end - from)
  }

  /**
   * As `read`, into existing memory.
   *
   * @param resultBytes - bytes of the result of which the target is a part, where it is; from memory, a result that exceeds
   * the caches is written past them
   */
  async readInto(start: number, target: Uint8Array, resultBytes?: number): Promise<void> {
    const end = start + target.byteLength
    checkRange(start, end, this.byteLength, this.label)
    const { from, to } = this.#wholeElements(start, end)
    const isDirect = this.#plan.copyOffset === undefined && from === start && to === end
    if (isDirect) await this.#fill(start, target, resultBytes)
    else target.set(await this.read(start, end))
  }

  readIntoSync(start: number, target: Uint8Array): void {
    const end = start + target.byteLength
    checkRange(start, end, this.byteLength, this.label)
    const { from, to } = this.#wholeElements(start, end)
    const isDirect = this.#plan.copyOffset === undefined && from === start && to === end
    if (isDirect) systemError.wrap(this.label, () => this.#fillSync(start, target))
    else target.set(this.readSync(start, end))
  }

  /** The range widened to whole elements, which plans write. */
  #wholeElements(start: number, end: number): { from: number; to: number } {
    const size = this.#plan.rangeQuantum
    return {
      from: start - (start % size),
      to: Math.min(this.byteLength, Math.ceil(end / size) * size),
    }
  }

  async #fill(start: number, target: Uint8Array, resultBytes?: number): Promise<void> {
    const end = start + target.byteLength
    const { fromFile } = this
    await systemError.wrapAsync(this.label, async () => {
      if (fromFile) await this.#runner.runFile(fromFile.file, fromFile.offset, target, start, end)
      else if (this.fillsOnThread) await this.#fillBySlices(start, target, resultBytes)
      else if (this.#base.source instanceof MemorySource && isPinned(this.#base.bytesSync())) {
        await this.#runner.run(this.#base.bytesSync(), target, start, end)
      } else await this.#fillFromRanges(start, target)
    })
  }

  /** From memory that its owner may transfer between two slices. */
  async #fillBySlices(start: number, target: Uint8Array, resultBytes?: number): Promise<void> {
    const slice = this.chunkBytes(SLICE_BYTES)
    await inSlices(start, start + target.byteLength, slice, (from, to) => {
      const part = to - from === target.byteLength ? target : partOf(target, start, { start: from, end: to })
      this.#fillSync(from, part, resultBytes)
    })
  }

  #fillSync(start: number, target: Uint8Array, resultBytes?: number): void {
    const end = start + target.byteLength
    if (this.#base.source instanceof MemorySource) {
      const source = this.#base.bytesSync()
      // The addon reads two arguments faster than four.
      if (target.byteLength === this.byteLength && resultBytes === undefined) {
        this.#plan.runSync(source, target)
      } else this.#plan.runSync(source, target, start, end, resultBytes)
      return
    }
    const { fromFile } = this
    if (fromFile) this.#plan.runFileSync(fromFile.file, fromFile.offset, target, start, end)
    else this.#fillFromRangesSync(start, target)
  }

  async #fillFromRanges(start: number, target: Uint8Array): Promise<void> {
    const fetched = native().createSparseBuffer(this.#plan.sourceBytes)
    for (const { tile, ranges } of this.#tiles(start, start + target.byteLength)) {
      for (const range of ranges) fetched.fill(await this.#base.bytes(range), range.start)
      await this.#runner.run(fetched, partOf(target, start, tile), tile.start, tile.end)
      fetched.clear()
    }
  }

  #fillFromRangesSync(start: number, target: Uint8Array): void {
    const fetched: NativeSparseBuffer = native().createSparseBuffer(this.#plan.sourceBytes)
    for (const { tile, ranges } of this.#tiles(start, start + target.byteLength)) {
      for (const range of ranges) fetched.fill(this.#base.bytesSync(range), range.start)
      this.#plan.runSync(fetched, partOf(target, start, tile), tile.start, tile.end)
      fetched.clear()
    }
  }

  /** Cuts `[start, end)` of the result into tiles whose source bytes stay below the bound, as far as whole elements allow. */
  *#tiles(start: number, end: number): Generator<{ tile: ByteRange; ranges: ByteRange[] }> {
    const quantum = this.#plan.rangeQuantum
    for (let at = start; at < end; ) {
      let tileEnd = Math.min(end, at + TILE_BYTES - (TILE_BYTES % quantum))
      let ranges = this.#sourceRanges(at, tileEnd)
      while (lengthOf(ranges) > MAX_FETCHED_BYTES && tileEnd - at > quantum) {
        const half = Math.ceil((tileEnd - at) / 2 / quantum) * quantum
        tileEnd = at + half
        ranges = this.#sourceRanges(at, tileEnd)
      }
      yield { tile: { start: at, end: tileEnd }, ranges }
      at = tileEnd
    }
  }

  #sourceRanges(start: number, end: number): ByteRange[] {
    const pairs = this.#plan.sourceRanges(start, end)
    const ranges: ByteRange[] = []
    for (let i = 0; i < pairs.length; i += 2) ranges.push({ start: pairs[i]!, end: pairs[i + 1]! })
    return ranges
  }
}

/**
 * Bytes that one iteration of each loop over the destination's digits writes, outermost first; none is 0. A last column with
 * digits of its own counts like the columns before it.
 */
function iterationBytesOf({ side }: LayoutStorage, bits: number): number[] {
  let elements = 1
  const sizes = [...side.pieces[0]!.digits].reverse().map(({ radix }) => {
    const size = (elements * bits) / 8
    elements *= radix
    return size
  })
  return sizes.reverse().filter((size) => size > 0)
}

function partOf(target: Uint8Array, start: number, tile: ByteRange): Uint8Array {
  return target.subarray(tile.start - start, tile.end - start)
}

function lengthOf(ranges: readonly ByteRange[]): number {
  return ranges.reduce((sum, { start, end }) => sum + (end - start), 0)
}
