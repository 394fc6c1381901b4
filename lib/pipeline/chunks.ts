/**
 * Splits a planned file into chunks in file order, small enough to bound memory: bytes in memory, a range copied between file
 * descriptors, a range that the addon computes from file to file, or bytes that pass through JavaScript.
 */
import { bufferWithinBudget } from '../bytes/memory_budget.js'
import { nativeFileOf } from '../bytes/native_file.js'
import type { ByteSource } from '../bytes/source.js'
import type { PlanRunner } from '../device/device_plan.js'
import type { WriteSegment } from '../formats/format.js'
import type { NativeInputFile } from '../native/types.js'
import { asStored } from '../tensor/dense.js'
import { FusedTensor } from '../tensor/fused.js'
import { JoinedTensor } from '../tensor/joined.js'
import type { DenseTensor } from '../tensor/tensor.js'

/**
 * Size of a chunk that the addon computes or copies by itself: large enough to keep its threads busy, small enough for several
 * progress reports per second.
 */
export const NATIVE_CHUNK_BYTES = 32 * 1024 * 1024
/** Size of a chunk that passes through JavaScript. A few such chunks are in memory at a time. */
export const JS_CHUNK_BYTES = 2 * 1024 * 1024

interface Positioned {
  /** Offset of the chunk in the output. */
  readonly position: number
  readonly byteLength: number
  /** Number of tensors whose last byte is in this chunk. */
  readonly tensors: number
}

export type Chunk = Positioned &
  (
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
    | { readonly kind: 'produced'; produce(signal: AbortSignal | undefined): Promise<Uint8Array> }
    | {
        readonly kind: 'copied'
        readonly file: NativeInputFile
        /** Name of the file in error messages. */
        readonly label: string
        readonly start: number
      }
    | {
        readonly kind: 'computed'
        readonly plan: PlanRunner
        readonly file: NativeInputFile
        readonly label: string
        /** Offset of the plan's source in the file. */
        readonly offset: number
        /** First byte of the plan's result. */
        readonly start: number
      }
  )

/** A chunk without its position. */
type Work = Chunk extends infer P ? (P extends Chunk ? Omit<P, keyof Positioned> : never) : never

export interface ChunkOptions {
  /** True when the target accepts chunks that never pass through JavaScript. */
  readonly isNative: boolean
  /** Number of tensors in a range segment, for progress reports. */
  readonly tensorsOfRanges: number
}

/** The chunks of a file, without gaps, generated on demand. */
export function* chunksOf(segments: Iterable<WriteSegment>, options: ChunkOptions): Generator<Chunk> {
  let position = 0
  for (const segment of segments) {
    for (const { work, byteLength, tensors } of workOf(segment, options)) {
      // The spread is last: in Node 20 each property after a spread costs a microsecond.
      yield { position, byteLength, tensors, ...work } as Chunk
      position += byteLength
    }
  }
}

/** A chunk without its position, and its length. */
interface SizedWork {
  readonly work: Work
  readonly byteLength: number
  readonly tensors: number
}

function* workOf(segment: WriteSegment, { isNative, tensorsOfRanges }: ChunkOptions): Generator<SizedWork> {
  switch (segment.kind) {
    case 'bytes': {
      const { bytes } = segment
      yield { work: { kind: 'bytes', bytes }, byteLength: bytes.byteLength, tensors: 0 }
      return
    }
    case 'computed': {
      const produce = (signal: AbortSignal | undefined) => segment.compute(signal)
      yield { work: { kind: 'produced', produce }, byteLength: segment.byteLength, tensors: 0 }
      return
    }
    case 'range':
      yield* chunksOfSource(segment.source, segment.start, segment.end, isNative, tensorsOfRanges)
      return
    case 'tensor':
      yield* chunksOfTensor(segment.tensor, isNative)
  }
}

function* chunksOfTensor(tensor: DenseTensor, isNative: boolean): Generator<SizedWork> {
  const tensorInSource = asStored(tensor)
  if (tensorInSource instanceof JoinedTensor && tensorInSource.isSequence) {
    const { parts } = tensorInSource.recipe
    for (const part of parts) {
      const isLast = part === parts.at(-1)
      for (const sized of chunksOfTensor(part, isNative)) {
        yield isLast ? sized : { ...sized, tensors: 0 }
      }
    }
    return
  }
  const { byteLength } = tensorInSource.storage
  const fused = tensorInSource instanceof FusedTensor ? tensorInSource.source : undefined
  const fromFile = isNative && fused?.stored === undefined ? fused?.fromFile : undefined
  if (fused && fromFile) {
    const size = fused.chunkBytes(NATIVE_CHUNK_BYTES)
    yield* chunksOfRange(0, byteLength, size, 1, (start) => ({ kind: 'computed', ...fromFile, start }))
    return
  }
  const { source, start } = fused?.stored ?? tensorInSource
  yield* chunksOfSource(source, start, start + byteLength, isNative, 1)
}

function chunksOfSource(
  source: ByteSource,
  start: number,
  end: number,
  isNative: boolean,
  tensors: number,
): Generator<SizedWork> {
  const file = isNative ? nativeFileOf(source) : undefined
  if (file) {
    const label = source.label ?? 'file'
    return chunksOfRange(start, end, NATIVE_CHUNK_BYTES, tensors, (from) => ({
      kind: 'copied',
      file,
      label,
      start: from,
    }))
  }
  return chunksOfRange(start, end, bufferWithinBudget(JS_CHUNK_BYTES), tensors, (from, to) => ({
    kind: 'produced',
    produce: () => source.read(from, to),
  }))
}

/** The chunks of a range. An empty range gives one empty chunk, which reports its tensors as complete. */
function* chunksOfRange(
  start: number,
  end: number,
  size: number,
  tensors: number,
  work: (start: number, end: number) => Work,
): Generator<SizedWork> {
  if (start === end) yield { work: { kind: 'bytes', bytes: NOTHING }, byteLength: 0, tensors }
  for (let at = start; at < end; at += size) {
    const next = Math.min(end, at + size)
    yield { work: work(at, next), byteLength: next - at, tensors: next === end ? tensors : 0 }
  }
}

const NOTHING = new Uint8Array(0)
