/** The commands on OpenVINO IR. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save, tensor } from '../../lib/index.js'
import { sampleIr } from '../formats/openvino/ir_bytes.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const [IR, WEIGHTS] = [inFolder('model.xml'), inFolder('weights.safetensors')]

beforeAll(async () => {
  const { xml, bin } = sampleIr()
  writeFileSync(IR, xml)
  writeFileSync(inFolder('model.bin'), bin)
  await save(WEIGHTS, [
    tensor(Float32Array.of(6, 5, 4, 3, 2, 1), { shape: [2, 3], name: 'w' }),
    tensor([3, 2, 1, 0], { dtype: 'uint8', shape: [2, 2], name: 'sixes' }),
  ])
})

it('inspect lists constants, check accepts the file, and diff compares it with itself', async () => {
  const { tensors } = await runJson<{ tensors: { name: string; dtype: string }[] }>(['inspect', IR])
  expect(tensors.map(({ name, dtype }) => `${name} ${dtype}`)).toContain('loop/body/w float32')
  expect((await runCli(['check', IR])).code).toBe(0)
  expect((await runCli(['diff', IR, IR])).code).toBe(0)
})

describe('edit', () => {
  it('--weights writes both files', async () => {
    const output = inFolder('edited.xml')
    const { changes, byteLength } = await runJson<{ changes: string[]; byteLength: number }>([
      ...['edit', IR, '--weights', WEIGHTS, '-o', output],
    ])
    expect(changes).toEqual([`2 constants of ${WEIGHTS}; 9 others unchanged`])
    const sizes = [output, inFolder('edited.bin')].map((path) => readFileSync(path).length)
    expect(byteLength).toBe(sizes[0]! + sizes[1]!)
    const file = await open(output)
    expect([...(await file.dense('w').toTypedArray())]).toEqual([6, 5, 4, 3, 2, 1])
    expect([...(await file.dense('sixes').toTypedArray())]).toEqual([3, 2, 1, 0])
    file.close()
    expect((await runCli(['check', output])).code).toBe(0)
  })

  it('--replace-constant takes a tensor of another name', async () => {
    const output = inFolder('replaced.xml')
    const { code } = await runCli(['edit', IR, '--replace-constant', `w=${WEIGHTS}#w`, '-o', output])
    expect(code).toBe(0)
    const file = await open(output)
    expect([...(await file.dense('w').toTypedArray())]).toEqual([6, 5, 4, 3, 2, 1])
    file.close()
  })

  it.each([
    [
      ['--replace-constant', `sixes=${WEIGHTS}#w`],
      'The constant "sixes" is uint8 [2, 2]; float32 [2, 3] was given.',
    ],
    [['--rename', 'w=v'], '--rename edits tmfiles and ONNX models only'],
    [['--set-batch', '2'], '--set-batch edits tmfiles and ONNX models only'],
    [['--write', 'canonical'], '--write edits tmfiles and ONNX models only'],
  ])('%s is refused', async (args, message) => {
    const output = inFolder('never.xml')
    const { code, stderr } = await runCli(['edit', IR, ...args, '-o', output])
    expect([code, existsSync(output)]).toEqual([expect.any(Number), false])
    expect(code).not.toBe(0)
    expect(stderr).toContain(message)
  })

  it('with --force still refuses another shape, and does not offer it', async () => {
    const wrong = inFolder('wrong.safetensors')
    await save(wrong, [tensor(Float32Array.of(1), { shape: [1], name: 'w' })])
    for (const force of [[], ['--force']]) {
      const { code, stderr } = await runCli([
        'edit',
        IR,
        '--weights',
        wrong,
        ...force,
        '-o',
        inFolder('never.xml'),
      ])
      expect(code).not.toBe(0)
      expect(stderr).toContain('float32 [1] and the constant "w" is float32 [2, 3].')
    }
  })
})

describe('compress', () => {
  it('--to fp16 writes both files, and says what stays', async () => {
    const output = inFolder('half.xml')
    const report = await runJson<{
      tensors: { name: string }[]
      nodes: { name: string; reason: string }[]
      output: string
    }>([...['compress', IR, '--to', 'fp16', '-o', output]])
    expect(report.tensors.map(({ name }) => name)).toEqual(['w', 'w#8', 'loop/body/w'])
    expect(report.nodes).toEqual([{ name: 'empty', opType: 'Const', reason: 'it has no elements' }])
    const file = await open(output)
    expect(file.dense('w_compressed').dtype).toBe('float16')
    expect(Array.from(await file.dense('loop/body/w_compressed').toTypedArray(), Number)).toEqual([2, 3])
    file.close()
    expect((await runCli(['check', output])).code).toBe(0)
  })

  it('--out-dir names the file, and --dry-run writes none', async () => {
    expect((await runCli(['compress', IR, '--to', 'fp16', '--out-dir', inFolder('halves')])).code).toBe(0)
    expect(existsSync(inFolder('halves/model_fp16.xml'))).toBe(true)
    const { code, stdout } = await runCli(['compress', IR, '--to', 'fp16', '--dry-run'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('it has no elements')])
  })

  it.each([
    [['--to', 'q8', '-o', 'x.xml'], '--to q8 makes ONNX models'],
    [['--to', 'fp16', '-o', 'x.onnx'], 'must end in .xml'],
    [['--to', 'fp16', '--no-keep-io', '-o', 'x.xml'], '--no-keep-io is for ONNX models'],
    [['--to', 'fp16', '--tidy', '-o', 'x.xml'], '--tidy is for ONNX models'],
    [['--to', 'fp16', '--block-size', '32', '-o', 'x.xml'], '--block-size is for ONNX models'],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await runCli(['compress', IR, ...args])
    expect(code).not.toBe(0)
    expect(stderr).toContain(message)
  })
})
