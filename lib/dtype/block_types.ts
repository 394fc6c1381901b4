/** The block types of quantized tensors as records: BLOCK_DTYPES by name. */
import { BLOCK_TYPE_TABLE } from './block_type_table.js'
import { type Dtype, resolveDtype } from './dtypes.js'

type Row = (typeof BLOCK_TYPE_TABLE)[number]

/** Name of a block type: ggml's name in lower case, for example `q4_k`. */
export type BlockDtype = Row[0]

/** A type whose consecutive elements share scales, a fixed number at a time. */
export interface BlockDtypeInfo {
  readonly name: BlockDtype
  /** Elements of a block. */
  readonly elements: number
  /** Bytes of a block. */
  readonly bytes: number
  /** Number of the type in ggml and in GGUF files. */
  readonly ggml: number
}

/** All block types by name. */
export const BLOCK_DTYPES = Object.fromEntries(
  BLOCK_TYPE_TABLE.map(([name, ggml, elements, bytes]) => [name, { name, elements, bytes, ggml }]),
) as { readonly [name in BlockDtype]: BlockDtypeInfo }

/** True for the name of a block type. */
export function isBlockDtype(name: unknown): name is BlockDtype {
  return typeof name === 'string' && Object.hasOwn(BLOCK_DTYPES, name)
}

/**
 * The element type or block type of a name or alias, in lower or upper case.
 *
 * @throws TileworkError ERR_DTYPE with the nearest names
 */
export function resolveElementType(name: unknown): Dtype | BlockDtype {
  const lower = typeof name === 'string' ? name.toLowerCase() : undefined
  return isBlockDtype(lower) ? lower : resolveDtype(name)
}
