/** `--dtype`: the name of an element type. */
import { DTYPES, type Dtype, TileworkError } from '../index.js'

/** @throws TileworkError ERR_DTYPE with the names that exist */
export function dtypeByName(name: string): Dtype {
  if (Object.hasOwn(DTYPES, name)) return name as Dtype
  const known = Object.keys(DTYPES).join(', ')
  throw new TileworkError('ERR_DTYPE', `"${name}" is no element type; known are: ${known}.`)
}
