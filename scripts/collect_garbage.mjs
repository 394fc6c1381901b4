/** Collects garbage at once, in a Node that was started without the flag for it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

export const collectGarbage = runInNewContext('gc')
