/** `--dtype`: the name of an element type. */
import { DTYPES, type Dtype, TileworkError } from '../../index.js'

const BY_SHORT_NAME: ReadonlyMap<string, Dtype> = new Map(
  Object.values(DTYPES).map(({ shortName, name }) => [shortName, name]),
)

/**
 * @param name - a name, or a short one such as `bf16`
 * @throws TileworkError ERR_DTYPE with the names that exist
 */
export function dtypeByName(name: string): Dtype {
  if (Object.hasOwn(DTYPES, name)) return name as Dtype
  const dtype = BY_SHORT_NAME.get(name)
  if (dtype !== undefined) return dtype
  const known = Object.keys(DTYPES).join(', ')
  throw new TileworkError('ERR_DTYPE', `"${name}" is no element type; known are: ${known}.`)
}
