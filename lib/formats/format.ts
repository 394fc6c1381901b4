/** What a file format gives to the registry: the same four deeds for each. */
import type { ByteSource } from '../bytes/source.js'
import type { Finding, Level } from '../errors.js'
import type { DenseTensor, Tensor } from '../tensor/tensor.js'

/** Upper bounds for a read. Every one has a default with its reason beside the format's schema. */
export interface Limits {
  /** Most tensors of a file. */
  readonly tensors?: number
  /** Most bytes of headers that are read to open a file. */
  readonly headerBytes?: number
  /** Most bytes that all tensors together may decode to. */
  readonly totalBytes?: number
}

export interface ReadOptions {
  readonly level: Level
  readonly limits: Limits
}

/** Tensors in file order. */
export interface TensorList extends Iterable<Tensor> {
  readonly length: number
  /** Negative indices count from the end; undefined outside. */
  at(index: number): Tensor | undefined
  get(name: string): Tensor | undefined
}

export interface ReadResult {
  readonly tensors: TensorList
  readonly findings: readonly Finding[]
}

/** A piece of a file to be written: bytes in memory, the storage of a tensor, or a range of a source as it is. */
export type WriteSegment =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'tensor'; readonly tensor: DenseTensor }
  | { readonly kind: 'range'; readonly source: ByteSource; readonly start: number; readonly end: number }

/** A file to be written, piece after piece without gaps. */
export interface WritePlan {
  readonly byteLength: number
  readonly segments: readonly WriteSegment[]
}

export interface Format<WriteOptions = unknown> {
  readonly name: string
  /** File name extensions, with the dot. */
  readonly extensions: readonly string[]
  /** True when the first bytes and the length could be this format. Cheap; `read` decides. */
  detect(source: ByteSource): Promise<boolean>
  /** Throws a TileworkError at the first thing that cannot be read safely (lenient) or breaks a rule (strict). */
  read(source: ByteSource, options: ReadOptions): Promise<ReadResult>
  /** Everything wrong with the bytes at the given level, costly checks included. Never throws on bad bytes. */
  check(source: ByteSource, options: ReadOptions): Promise<Finding[]>
  /** Throws ERR_UNSUPPORTED with the reason for what the format cannot hold, before anything is written. */
  plan(tensors: readonly Tensor[], options?: WriteOptions): Promise<WritePlan>
}
