/** A GGUF file beside its tensors: the metadata, which may be edited, and where the parts of the file are. */
import { inspect } from 'node:util'
import { uncloneable } from '../../uncloneable.js'
import { MODEL_FORMAT } from '../model_brand.js'
import { metadataTexts } from './description.js'
import { GgufMetadata } from './metadata.js'
import { DEFAULT_ALIGNMENT, FORMAT_NAME, VERSION } from './schema.js'
import { type ReportedFile, SPLIT_KEYS } from './shards.js'
import { GgufTensors } from './tensor_list.js'

const UNCLONEABLE = uncloneable('a GGUF model; send its path or bytes instead')

export class GgufModel {
  /** The first property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  /** Keys and values in file order. Saving the file writes them as they are then. */
  readonly metadata: GgufMetadata
  /** Version of the format that the file has: 1, 2 or 3. */
  readonly version: number
  readonly isLittleEndian: boolean
  /** The data and each tensor start at multiples of this. */
  readonly alignment: number
  /** @internal The tensors of all shards. */
  readonly tensors: GgufTensors
  /** @internal The file, and its shards if it has any. */
  readonly files: readonly ReportedFile[]

  /** @internal */
  constructor(files: readonly ReportedFile[]) {
    const first = files[0]?.header
    this.files = files
    this.metadata = first?.metadata ?? new GgufMetadata()
    this.tensors = new GgufTensors(files, metadataTexts(this.metadata))
    this.version = first?.version ?? VERSION
    this.isLittleEndian = first?.isLittleEndian ?? true
    this.alignment = first?.alignment ?? DEFAULT_ALIGNMENT
  }

  /** @internal Names the format without loading it. */
  get [MODEL_FORMAT](): 'gguf' {
    return FORMAT_NAME
  }

  /** @internal A copy of the metadata for a file of all tensors: without the keys of a shard. */
  wholeMetadata(): GgufMetadata {
    const metadata = this.metadata.copy()
    for (const key of SPLIT_KEYS) metadata.delete(key)
    return metadata
  }

  [inspect.custom](): string {
    return `GgufModel version ${this.version}, ${this.metadata.size} keys`
  }
}
