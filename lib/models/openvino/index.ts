/** OpenVINO IR, as it is loaded when a file of it is read or written. */
import type { ModelFormat } from '../../formats/format.js'
import { check } from '../../formats/openvino/check.js'
import { plan } from '../../formats/openvino/write.js'
import { describeOpenvino } from './description.js'
import type { OpenvinoModel } from './model.js'
import { namingPairs, planCopy } from './pair.js'
import { read } from './read.js'
import { planModel } from './write.js'

export type { OpenvinoConstantChange, OpenvinoFloat16Report } from './float16.js'
export type { OpenvinoModel } from './model.js'
export type { OpenvinoPort } from './summary.js'

export const openvino: ModelFormat<OpenvinoModel, Record<never, never>> = {
  read,
  check,
  plan,
  planCopy,
  naming: namingPairs,
  isUnchanged: ({ replaced, float16 }) => replaced.size + float16.size === 0,
  weightsOf: (model) => model.constants(),
  nodesOf: ({ operatorCount }) => operatorCount,
  describe: describeOpenvino,
  planModel,
}
