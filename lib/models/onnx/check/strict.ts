/** Rules of a strict check that need the schemas of operators, which are loaded for it alone. */
import type { ByteSource } from '../../../bytes/source.js'
import { Budget } from '../../../formats/budget.js'
import type { ReadOptions } from '../../../formats/format.js'
import type { CheckedModel } from '../../../formats/onnx/check.js'
import { DEFAULT_LIMITS } from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import { checkNodes } from './node_rules.js'
import { checkTypes } from './type_rules.js'

/** @param model - what the check of the bytes found */
export async function checkStrictly(
  source: ByteSource,
  { files, nodes }: CheckedModel,
  { limits }: ReadOptions,
  report: Report,
): Promise<void> {
  await checkNodes(source, new Budget(limits, DEFAULT_LIMITS), report)
  const isSound = report.findings().every(({ severity }) => severity !== 'error')
  if (isSound) checkTypes(source, files, nodes, report)
}
