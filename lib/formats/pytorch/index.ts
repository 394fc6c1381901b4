/** PyTorch, as it is loaded when a file of it is read. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { read } from './read.js'
import { plan } from './write.js'

export type { PytorchContainer } from './checkpoint.js'
export type { PytorchValue } from './plain_values.js'
export type { PytorchFile } from './read.js'

export const pytorch: Format<Record<never, never>> = { read, check, plan }
