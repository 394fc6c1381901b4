/** What a file format gives to the registry: the same four deeds for each. */
import type { ByteSource } from '../bytes/source.js'
import type { Finding, Level } from '../errors.js'
import type { DenseStorage, DenseTensor, Tensor } from '../tensor/tensor.js'

/** Upper bounds for a read. Every one has a default with its reason beside the format's schema. */
export interface Limits {
  /** Most tensors of a file. */
  readonly tensors?: number
  /** Most bytes of headers that are read to open a file. */
  readonly headerBytes?: number
  /** Most bytes that all tensors together may decode to. */
  readonly totalBytes?: number
  /** Most levels of messages in each other, in formats that nest them. */
  readonly depth?: number
}

export interface ReadOptions {
  readonly level: Level
  readonly limits: Limits
  /** Which of a format's messages the file is, where the format has several and the content does not say. */
  readonly message?: string
  /**
   * Opens another file of the folder that the source lies in, for formats of several files. The source lives as long
   * as the open file. Errors: ERR_PATH_ESCAPE for a name that leads out of the folder, ERR_IO; ERR_UNSUPPORTED where
   * the source has no folder. With `isSole` a file that has other names too (hard links) is refused as an escape, unless
   * the user allows it: for formats whose files name any path they like.
   */
  readonly sibling: (name: string, rules?: { readonly isSole?: boolean }) => Promise<ByteSource>
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
  /** The graph around the tensors, for formats that have one; what it is by then is what `planModel` writes. */
  readonly model?: object
}

/**
 * A piece of a file to be written: bytes in memory, bytes that are computed when the file has come to them (a checksum
 * of what follows), the storage of a tensor, or a range of a source as it is.
 */
export type WriteSegment =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'computed'
      readonly byteLength: number
      compute(signal: AbortSignal | undefined): Promise<Uint8Array>
    }
  | { readonly kind: 'tensor'; readonly tensor: DenseTensor }
  | { readonly kind: 'range'; readonly source: ByteSource; readonly start: number; readonly end: number }

/** A file to be written, piece after piece without gaps. */
export interface WritePlan {
  readonly byteLength: number
  readonly segments: readonly WriteSegment[]
  /**
   * Files that lie beside this one and that it refers to (shards). They are complete on disk before this one takes its
   * name. Only a path can be their target.
   */
  readonly siblings?: readonly SiblingPlan[]
  /** Files that the replaced file referred to, and that nobody may need when every file of this plan has its name. */
  readonly replaced?: ReplacedFiles
}

export interface ReplacedFiles {
  /** File names in the folder of the main file. */
  readonly names: readonly string[]
  /** Removes those that nobody needs by then. What cannot be removed stays: it never fails. */
  remove(): Promise<void>
}

export interface SiblingPlan extends WritePlan {
  /** File name in the folder of the main file. */
  readonly name: string
}

/** What a plan may know of where it will be written. */
export interface WriteTarget {
  /** The path of the main file; absent for a stream or memory. */
  readonly path?: string
}

export interface Format<WriteOptions = unknown> {
  readonly name: string
  /** File name extensions, with the dot. */
  readonly extensions: readonly string[]
  /** Names of the writer's options. */
  readonly writeOptions: readonly (keyof WriteOptions & string)[]
  /** True when the first bytes and the length could be this format. Cheap; `read` decides. */
  detect(source: ByteSource): Promise<boolean>
  /** Throws a TileworkError at the first thing that cannot be read safely (lenient) or breaks a rule (strict). */
  read(source: ByteSource, options: ReadOptions): Promise<ReadResult>
  /** Everything wrong with the bytes at the given level, costly checks included. Never throws on bad bytes. */
  check(source: ByteSource, options: ReadOptions): Promise<Finding[]>
  /**
   * True for a storage that is read back as it was written, with its layout and logical shape. A row-major one without
   * padding always is; where this is absent, no other is.
   */
  keepsLayout?(storage: DenseStorage): boolean
  /** Throws ERR_UNSUPPORTED with the reason for what the format cannot hold, before anything is written. */
  plan(tensors: readonly Tensor[], options?: WriteOptions, target?: WriteTarget): Promise<WritePlan>
  /** True for a model of this format. Present with `planModel`. */
  isModel?(content: unknown): boolean
  /** True for a model that is as it was read, so that its file can be copied. Absent where `planModel` finds out. */
  isUnchanged?(model: object): boolean
  /** The weights of a model as it is now: what another format can store of it. */
  weightsOf?(model: object): readonly Tensor[]
  /**
   * Plans the file of a model with all that was changed of it. One that was read and not changed is written byte for
   * byte. Errors: as `plan`.
   */
  planModel?(model: object, options?: WriteOptions, target?: WriteTarget): Promise<WritePlan>
  /**
   * Plans a copy of an open file and of those that it refers to, by their names in it; the target has a path. Where a
   * name belongs to somebody else there, the copy gets another one, and the copied file refers to that. Where this is
   * absent, names stay as they are.
   *
   * @throws TileworkError ERR_IO, ERR_FILE_CHANGED
   */
  planCopy?(
    source: ByteSource,
    siblings: ReadonlyMap<string, ByteSource>,
    target: WriteTarget & { readonly path: string },
  ): Promise<WritePlan>
}
