/** What commands print as text for a file of every format, with every kind of tensor that it holds. */
import { describe, expect, it } from 'vitest'
import {
  type AnyTensor,
  cast,
  DTYPES,
  type Dtype,
  type FormatName,
  open,
  QUANTIZED_BLOCK_DTYPES,
  quantize,
  save,
  sparseFromDense,
  stringTensor,
  TileworkError,
  tensor,
} from '../../lib/index.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { addModel } from '../models/onnx/small_model.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const numbers = tensor(
  Float32Array.from({ length: 512 }, (_, at) => at % 7),
  { shape: [2, 256], name: 'w' },
)

/** Tensors of every element type, of every block type, sparse ones and strings, each alone. */
async function everyTensor(): Promise<AnyTensor[]> {
  return [
    ...Object.keys(DTYPES).flatMap((dtype) => {
      try {
        return [cast(numbers, dtype as Dtype)]
      } catch (error) {
        if (error instanceof TileworkError) return []
        throw error
      }
    }),
    ...QUANTIZED_BLOCK_DTYPES.map((type) => quantize(numbers, type)),
    await sparseFromDense(numbers),
    stringTensor(['a', 'b'], { name: 's' }),
  ]
}

const FORMATS: readonly FormatName[] = ['btf', 'npy', 'npz', 'onnx', 'safetensors', 'gguf']
const COMMANDS = [['inspect'], ['inspect', '--stats', '--values', '--digest'], ['check', '--level', 'strict']]

describe.each(FORMATS)('%s', (format) => {
  it('is printed with every kind of tensor that it holds', { timeout: 120_000 }, async () => {
    const kinds = new Set<string>()
    for (const [at, each] of (await everyTensor()).entries()) {
      const path = inFolder(`${at}.${format}`)
      const isHeld = await save(path, [each], { format }).then(
        () => true,
        (error: unknown) => {
          if (error instanceof TileworkError) return false
          throw error
        },
      )
      if (!isHeld) continue
      using file = await open(path)
      for (const { kind } of file.tensors) kinds.add(kind)
      for (const command of COMMANDS) await expectText([...command, path])
      await expectText(['diff', path, path])
    }
    expect([...kinds].sort()).toEqual(KINDS[format])
  })
})

/** The kinds that a file of a format holds, so that nothing is left out above without a word. */
const KINDS: Readonly<Partial<Record<FormatName, string[]>>> = {
  btf: ['dense', 'sparse'],
  npy: ['dense', 'string'],
  npz: ['dense', 'string'],
  onnx: ['dense', 'sparse', 'string'],
  safetensors: ['dense'],
  gguf: ['block', 'dense'],
}

it.each([
  ['model.onnx', addModel],
  ['model.tmfile', smallModel],
])('%s is printed', async (name, model) => {
  const path = inFolder(name)
  await save(path, model() as never)
  for (const command of COMMANDS) await expectText([...command, path])
  await expectText(['inspect', path, '--text'])
  await expectText(['diff', path, path])
})

async function expectText(args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runCli(args, { isTTY: true, columns: 80 })
  expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' })
  expect(stdout).not.toBe('')
}
