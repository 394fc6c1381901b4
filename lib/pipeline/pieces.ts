/**
 * A planned file as pieces in file order, each small enough to be worked in bounded memory: what is in memory already,
 * a range that goes from descriptor to descriptor, a range that the addon computes from file to file, and what has to
 * pass through JavaScript.
 */
import { bufferWithinBudget } from '../bytes/memory_budget.js'
import { nativeFileOf } from '../bytes/native_file.js'
import type { ByteSource } from '../bytes/source.js'
import type { PlanRunner } from '../device/device_plan.js'
import type { WriteSegment } from '../formats/format.js'
import type { NativeInputFile } from '../native/types.js'
import { asStored } from '../tensor/dense.js'
import { FusedTensor } from '../tensor/fused.js'
import type { DenseTensor } from '../tensor/tensor.js'

/**
 * Bytes of a piece that the addon works alone. Large, so that its threads have work while JavaScript answers; small
 * enough that progress is told several times a second.
 */
export const NATIVE_PIECE_BYTES = 32 * 1024 * 1024
/** Bytes of a piece that passes through JavaScript: a few of them are in memory at a time. */
export const WINDOW_BYTES = 2 * 1024 * 1024

interface Placed {
  /** Where the piece goes in the file. */
  readonly position: number
  readonly byteLength: number
  /** Tensors that are complete with this piece. */
  readonly tensors: number
}

export type Piece = Placed &
  (
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
    | { readonly kind: 'produced'; produce(signal: AbortSignal | undefined): Promise<Uint8Array> }
    | {
        readonly kind: 'copied'
        readonly file: NativeInputFile
        /** Names the file in errors. */
        readonly label: string
        readonly start: number
      }
    | {
        readonly kind: 'computed'
        readonly plan: PlanRunner
        readonly file: NativeInputFile
        readonly label: string
        /** Where the source of the plan begins in the file. */
        readonly offset: number
        /** First byte of the result. */
        readonly start: number
      }
  )

/** A piece without its place. */
type Work = Piece extends infer P ? (P extends Piece ? Omit<P, keyof Placed> : never) : never

export interface CutOptions {
  /** True when the target takes pieces that never pass through JavaScript. */
  readonly isNative: boolean
  /** Tensors that are complete with the end of a range of a file that is copied whole. */
  readonly tensorsOfRanges: number
}

/** The pieces of a file, without gaps, made as they are asked for. */
export function* piecesOf(segments: readonly WriteSegment[], options: CutOptions): Generator<Piece> {
  let position = 0
  for (const segment of segments) {
    for (const { work, byteLength, tensors } of cut(segment, options)) {
      yield { ...work, position, byteLength, tensors } as Piece
      position += byteLength
    }
  }
}

interface CutPiece {
  readonly work: Work
  readonly byteLength: number
  readonly tensors: number
}

function* cut(segment: WriteSegment, { isNative, tensorsOfRanges }: CutOptions): Generator<CutPiece> {
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
      yield* cutSource(segment.source, segment.start, segment.end, isNative, tensorsOfRanges)
      return
    case 'tensor':
      yield* cutTensor(segment.tensor, isNative)
  }
}

function cutTensor(tensor: DenseTensor, isNative: boolean): Generator<CutPiece> {
  const tensorInSource = asStored(tensor)
  const { byteLength } = tensorInSource.storage
  const fused = tensorInSource instanceof FusedTensor ? tensorInSource.source : undefined
  const fromFile = isNative && fused?.stored === undefined ? fused?.fromFile : undefined
  if (fused && fromFile) {
    const size = fused.chunkBytes(NATIVE_PIECE_BYTES)
    return windows(0, byteLength, size, 1, (start) => ({ kind: 'computed', ...fromFile, start }))
  }
  const { source, start } = fused?.stored ?? tensorInSource
  return cutSource(source, start, start + byteLength, isNative, 1)
}

function cutSource(
  source: ByteSource,
  start: number,
  end: number,
  isNative: boolean,
  tensors: number,
): Generator<CutPiece> {
  const file = isNative ? nativeFileOf(source) : undefined
  if (file) {
    const label = source.label ?? 'file'
    return windows(start, end, NATIVE_PIECE_BYTES, tensors, (from) => ({
      kind: 'copied',
      file,
      label,
      start: from,
    }))
  }
  return windows(start, end, bufferWithinBudget(WINDOW_BYTES), tensors, (from, to) => ({
    kind: 'produced',
    produce: () => source.read(from, to),
  }))
}

/** A range cut into windows. One without bytes is a piece too: its tensors are complete with it. */
function* windows(
  start: number,
  end: number,
  size: number,
  tensors: number,
  work: (start: number, end: number) => Work,
): Generator<CutPiece> {
  if (start === end) yield { work: { kind: 'bytes', bytes: NOTHING }, byteLength: 0, tensors }
  for (let at = start; at < end; at += size) {
    const next = Math.min(end, at + size)
    yield { work: work(at, next), byteLength: next - at, tensors: next === end ? tensors : 0 }
  }
}

const NOTHING = new Uint8Array(0)
