/** TFLite, as it is loaded when a file of it is read. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { read } from './read.js'
import { plan } from './write.js'

export type { TfliteFile, TfliteSignature, TfliteSubgraph, TfliteTensor } from './model.js'

export const tflite: Format<Record<never, never>> = { read, check, plan }
