/**
 * The contract of a file format, in two halves: its entry in the registry, which is always loaded, and its
 * implementation, which is loaded when a file of the format is read or written.
 */
import type { IdentifiedFile } from '../bytes/file_identity.js'
import type { ByteSource } from '../bytes/source.js'
import type { Finding, Level } from '../errors.js'
import type { AnyTensor, DenseStorage, DenseTensor, Tensor } from '../tensor/tensor.js'
import type { FileHead } from './file_head.js'
import type { ModelDescription } from './model_description.js'
import type { NamingFormat } from './named_files.js'

/** Upper bounds for a read. The schema of each format gives the default and the reason for it. */
export interface Limits {
  /** Maximum number of tensors in a file. */
  readonly tensors?: number
  /** Maximum number of header bytes that opening a file reads. */
  readonly headerBytes?: number
  /** Maximum number of bytes that all tensors together decode to. */
  readonly totalBytes?: number
  /** Maximum nesting depth of messages, in formats that nest them. */
  readonly depth?: number
}

export interface ReadOptions {
  readonly level: Level
  readonly limits: Limits
  /** Which of a format's messages the file is, where the format has several and the content does not identify one. */
  readonly message?: string
  /** What a pickle with names that are not data does: `refuse` (default), or `omit`, which leaves out what they make. */
  readonly unknown?: 'refuse' | 'omit'
  /** The messages that detection found possible; absent where the caller named the format and nothing was detected. */
  readonly detectedMessages?: readonly string[]
  /**
   * Opens another file in the folder of the source, for formats of several files. That source lives as long as the open
   * file. With `isSole`, a file that has several names (hard links) counts as an escape unless the user allows it; this
   * is for formats whose files name arbitrary paths.
   *
   * Errors: ERR_PATH_ESCAPE for a name that leads out of the folder, ERR_IO; ERR_UNSUPPORTED where the source has no
   * folder.
   */
  readonly sibling: (name: string, rules?: { readonly isSole?: boolean }) => Promise<ByteSource>
}

/** Tensors in file order. */
export interface TensorList<T extends AnyTensor = AnyTensor> extends Iterable<T> {
  readonly length: number
  /** Negative indices count from the end; undefined outside. */
  at(index: number): T | undefined
  get(name: string): T | undefined
}

/** Tensors to be written: an array, or the list of a file, which makes each of them when it is asked for. */
export type TensorSequence<T extends AnyTensor = Tensor> = Pick<TensorList<T>, 'length' | 'at'> & Iterable<T>

export interface ReadResult<T extends AnyTensor = Tensor> {
  readonly tensors: TensorList<T>
  readonly findings: readonly Finding[]
  /** What the file holds beside tensors, for formats whose entry names a property for it. */
  readonly details?: object
  /** The graph around the tensors, for formats that have one. `planModel` writes its state at the time of the call. */
  readonly model?: object
}

/**
 * A part of a file to be written: bytes in memory, bytes that are computed when the writer reaches them (a checksum of
 * what follows), the storage of a tensor, or an unchanged range of a source.
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

/** A file to be written: its segments in order, without gaps. */
export interface WritePlan {
  readonly byteLength: number
  /** Iterated once or more; made anew by each iteration where a list of them would take more memory than the file. */
  readonly segments: Iterable<WriteSegment>
  /**
   * Files beside this one that it refers to (shards). They are complete on disk before this file takes its name. Only a
   * path can be their target.
   */
  readonly siblings?: readonly SiblingPlan[]
  /**
   * Files that the replaced file names. Those that no file names any more are removed once every file of this plan has its
   * name.
   */
  readonly replaced?: readonly IdentifiedFile[]
}

export interface SiblingPlan extends WritePlan {
  /** File name in the folder of the main file. */
  readonly name: string
  /** True where a file of that name may be replaced. Else the save fails if the name is taken by then. */
  readonly replaces?: boolean
}

/** What a plan knows of its destination. */
export interface WriteTarget {
  /** The path of the main file; absent for a stream or memory. */
  readonly path?: string
}

/** Whether a file could be of a format; for a format of several messages, which of them it could be. */
export type Detection = boolean | { readonly messages: readonly string[] }

type OptionName<WriteOptions> = unknown extends WriteOptions ? string : keyof WriteOptions & string

/** The half of a format that is always loaded. */
export interface FormatEntry<WriteOptions = unknown> {
  readonly name: string
  /** File name extensions with the dot, the usual one first. */
  readonly extensions: readonly string[]
  /** True where tensors alone do not make a file of the format: `plan` refuses. */
  readonly isReadOnly?: boolean
  /** The names of all options of the writer. */
  readonly writeOptions: Readonly<Record<OptionName<WriteOptions>, true>>
  /** The property of an open file that holds what it says beside its tensors; absent for files of tensors alone. */
  readonly detailsProperty?: string
  /** The property of an open file that holds its model; absent for formats of tensors alone. */
  readonly modelProperty?: string
  /** Cheap; `read` decides. */
  detect(head: FileHead): Detection | Promise<Detection>
  /**
   * True for the start of a file of the format that `detect` refuses because it is cut or its first lengths are wrong:
   * the reader then reports what is wrong with it. Asked only for bytes that no format detects.
   */
  isDamaged?(head: FileHead): boolean | Promise<boolean>
  /**
   * True for a storage that a reader gets back with its layout and logical shape. Every format keeps row-major storage
   * without padding; where this is absent, it keeps no other.
   */
  keepsLayout?(storage: DenseStorage): boolean
  /**
   * True for a path whose extension means another encoding than that of files without a name, so that these are not copied there.
   * Absent where all extensions mean the same.
   */
  isEncoded?(path: string): boolean
  /** True where the writer takes tensors of blocks as they are; where it is absent, it gets their numbers. */
  readonly keepsBlocks?: boolean
  /** True where layouts are entries of tilework, so that other readers see an array with the shape of the blocks. */
  readonly addsLayoutEntries?: boolean
  load(): Promise<Format<WriteOptions, AnyTensor>>
  /** True where files of the format may name others: `Format.naming` says how. */
  readonly namesFiles?: boolean
}

/** The entry of a format that gives an open file a model. */
export interface ModelFormatEntry<Model extends object = object, WriteOptions = unknown>
  extends FormatEntry<WriteOptions> {
  readonly modelProperty: string
  load(): Promise<ModelFormat<Model, WriteOptions, AnyTensor>>
}

/** The half of a format that is loaded when it is needed. */
export interface Format<WriteOptions = unknown, T extends AnyTensor = Tensor> {
  /** Throws a TileworkError at the first thing that cannot be read safely (lenient) or breaks a rule (strict). */
  read(source: ByteSource, options: ReadOptions): Promise<ReadResult<T>>
  /**
   * The bytes that `read` and `check` are given, for a file that stores them in another encoding; undefined for all others. The
   * source that is returned takes the place of the file, which is closed.
   *
   * @throws TileworkError for what cannot be decoded
   */
  decode?(source: ByteSource, options: ReadOptions): Promise<ByteSource | undefined>
  /** Everything wrong with the bytes at the given level, expensive checks included. Never throws on bad bytes. */
  check(source: ByteSource, options: ReadOptions): Promise<Finding[]>
  /** Throws ERR_UNSUPPORTED with the reason for what the format cannot represent, before anything is written. */
  plan(tensors: TensorSequence, options?: WriteOptions, target?: WriteTarget): Promise<WritePlan>
  /** How files of the format name others; absent for formats of one file. */
  readonly naming?: NamingFormat
  /**
   * Plans a copy of an open file and of the files it refers to, by their names in it; the target has a path. Where a
   * name belongs to an unrelated file in the target folder, the copy gets another one and the copied file refers to
   * that; undefined where only the model can be written with other names. Where this is absent, names stay.
   *
   * @throws TileworkError ERR_IO, ERR_FILE_CHANGED
   */
  planCopy?(
    source: ByteSource,
    siblings: ReadonlyMap<string, ByteSource>,
    target: WriteTarget & { readonly path: string },
  ): Promise<WritePlan | undefined>
}

/** A format whose files are models. The model's class names the format with `MODEL_FORMAT`. */
export interface ModelFormat<
  Model extends object = object,
  WriteOptions = unknown,
  T extends AnyTensor = Tensor,
> extends Format<WriteOptions, T> {
  read(source: ByteSource, options: ReadOptions): Promise<ReadResult<T> & { readonly model?: Model }>
  /** True for a model that is as it was read, so that its file can be copied. Absent where `planModel` finds out. */
  isUnchanged?(model: Model): boolean
  /** The current weights of a model: what a format without graphs stores of it. */
  weightsOf(model: Model): readonly T[] | TensorList<T>
  /** Number of nodes that compute, which no other format holds; those of constants and inputs do not count. */
  nodesOf(model: Model): number
  /** The model as names and texts, for the comparison of models. Throws for broken messages. */
  describe(model: Model): ModelDescription
  /**
   * Plans the file of a model with its edits. A model that was read and not changed is written byte for byte.
   * Errors: as `plan`.
   */
  planModel(model: Model, options?: WriteOptions, target?: WriteTarget): Promise<WritePlan>
}
