/** `convert --verify`: converts into a temporary folder and compares the result with the input before the output is written. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { type ConvertOptions, convert, type Dtype, type OpenFile, TileworkError } from '../../index.js'
import type { ConvertFlags } from './convert_options.js'
import type { Verification, Verifier } from './verify.js'

/**
 * Errors of models whose floats all have another type: bfloat16 rounds to 8 bits, the others to 11, at every node; from float16 to
 * float32 the rounding is lost.
 */
const TOLERANCES: Readonly<Partial<Record<Dtype, number>>> = { bfloat16: 0.1, float16: 0.02, float32: 0.02 }

/**
 * @param options - those of the conversion
 * @throws TileworkError ERR_UNSUPPORTED unless input and result are ONNX models
 */
export async function verifyConversion(
  file: OpenFile,
  { input, output }: { readonly input: string; readonly output: string },
  options: ConvertOptions,
  verifier: Verifier,
  { dtype }: Pick<ConvertFlags, 'dtype'>,
): Promise<Verification> {
  if (!file.onnx) throw noModel(`${input} is ${file.format}`)
  const folder = await mkdtemp(join(tmpdir(), 'tilework-convert-'))
  try {
    const path = join(folder, `model${extname(output)}`)
    const { onProgress: _, ...silent } = options
    const { format, droppedNodes } = await convert(file, path, silent)
    if (format !== 'onnx' || droppedNodes > 0) throw noModel(`${output} would be ${format} without its graph`)
    return await verifier.compare(input, path, { tolerance: TOLERANCES[dtype as Dtype] ?? 0 })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function noModel(found: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', `--verify runs ONNX models; ${found}.`)
}
