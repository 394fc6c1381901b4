/** `tilework compress model.xml --to fp16`: an OpenVINO IR with constants in float16. */
import type { OpenvinoModel } from '../../formats.js'
import { save, TileworkError } from '../../index.js'
import { startProgress } from '../text/progress.js'
import type { Terminal } from '../text/terminal.js'
import type { TargetReport } from './compress_report.js'
import type { TargetName } from './compress_targets.js'
import { fileOptions, type OutputChoice } from './output_options.js'

/** Options that change nodes of ONNX models, and their values where they are not given. */
const ONNX_OPTIONS: Readonly<Record<string, unknown>> = {
  keepIo: true,
  blockOp: undefined,
  blockNode: undefined,
  blockSize: undefined,
  asymmetric: undefined,
  accuracyLevel: undefined,
  gather: undefined,
  gemm: undefined,
  conv: undefined,
  perChannel: undefined,
  reduceRange: undefined,
  exclude: undefined,
  ranges: undefined,
  activationType: undefined,
  weightType: undefined,
  tidy: undefined,
  sensitivity: undefined,
}

/** @throws TileworkError ERR_UNSUPPORTED for targets and options of ONNX models alone */
export function checkOpenvinoChoice(choice: object, targets: readonly TargetName[]): void {
  const other = targets.find((to) => to !== 'fp16')
  if (other !== undefined) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `--to ${other} makes ONNX models; an OpenVINO IR takes --to fp16.`,
    )
  }
  for (const [key, usual] of Object.entries(ONNX_OPTIONS)) {
    const value = (choice as Readonly<Record<string, unknown>>)[key]
    if (value === undefined || value === usual) continue
    const flag = `--${key === 'keepIo' ? 'no-keep-io' : key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${flag} is for ONNX models; an OpenVINO IR follows the rule of save_model.`,
    )
  }
}

/** @param output - absent for a dry run */
export async function compressOpenvino(
  model: OpenvinoModel,
  { input, output }: { readonly input: string; readonly output: string | undefined },
  choice: OutputChoice,
  terminal: Terminal,
): Promise<TargetReport> {
  const { signal } = terminal
  const { constants, bytesBefore, bytesAfter } = await model.toFloat16({ signal })
  const nodes = constants.flatMap(({ name, reason }) =>
    reason === undefined ? [] : [{ name, opType: 'Const', reason }],
  )
  const tensors = constants.flatMap(({ to, ...change }) => (to === undefined ? [] : [{ ...change, to }]))
  const report = { input, to: 'fp16', nodes, tensors, bytesBefore, bytesAfter } as const
  if (output === undefined) return report
  const progress = startProgress('Writing fp16', terminal)
  try {
    await save(output, model, { ...fileOptions(choice), signal, onProgress: (now) => progress.update(now) })
  } finally {
    progress.stop()
  }
  return { ...report, output }
}
