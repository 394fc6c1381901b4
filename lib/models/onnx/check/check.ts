/** Checks an ONNX file: its bytes, and at level strict whether readers accept the model. */
import type { ByteSource } from '../../../bytes/source.js'
import type { Finding } from '../../../errors.js'
import type { ReadOptions } from '../../../formats/format.js'
import { checkBytes } from '../../../formats/onnx/check.js'
import { FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { Report } from '../../../formats/report.js'

/** @throws TileworkError errors of the source only: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, options: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, options.level, 'collect')
  const model = await checkBytes(source, options, report)
  if (model && options.level === 'strict') {
    const { checkStrictly } = await import('./strict.js')
    await checkStrictly(source, model, options, report)
  }
  return report.findings()
}
