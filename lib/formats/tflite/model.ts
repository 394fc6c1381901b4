/** What a TFLite file says beside the values of its tensors. */

/** A tensor of a subgraph: a weight, an activation, an input or an output. */
export interface TfliteTensor {
  /** As the file has it; names need not be unique. */
  readonly name: string
  /** The name of the type in the schema: `FLOAT32`, `INT4`. */
  readonly type: string
  readonly shape: readonly number[]
  /** The shape with -1 where an extent is set when the model runs; absent where all are known. */
  readonly shapeSignature?: readonly number[]
  /** The name in `file.tensors`; absent for a tensor without data. */
  readonly key?: string
}

export interface TfliteSubgraph {
  readonly name: string
  readonly tensors: readonly TfliteTensor[]
  /** Names of tensors. */
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly operatorCount: number
}

/** A function that callers find by its key. */
export interface TfliteSignature {
  readonly key: string
  /** Index of the subgraph. */
  readonly subgraph: number
  /** Name of the tensor by the name of the argument. */
  readonly inputs: ReadonlyMap<string, string>
  readonly outputs: ReadonlyMap<string, string>
}

export interface TfliteFile {
  /** Of the schema: 3. */
  readonly version: number
  readonly description: string
  readonly subgraphs: readonly TfliteSubgraph[]
  readonly signatures: readonly TfliteSignature[]
  /** Names of the entries of metadata that other tools added. */
  readonly metadata: readonly string[]
}
