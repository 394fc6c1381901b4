/** `convert` and `convertMany` of the library: what the command line does, with options, results and errors as data. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type ConvertManyProgress,
  type ConvertOptions,
  convert,
  convertMany,
  type DenseTensor,
  type FileOutcome,
  type ManifestDamage,
  open,
  quantize,
  reorder,
  save,
  serialize,
  sparseFromDense,
  tensor,
} from '../../lib/index.js'
import { readPathList } from '../../lib/internal.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'

const inFolder = temporaryFolder()

function counting(shape: number[], name = ''): DenseTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return tensor(
    Float32Array.from({ length: count }, (_, index) => index + 1),
    { shape, name },
  )
}

const IMAGE = inFolder('image.npy')
const NAMED = inFolder('named.safetensors')
const image = counting([2, 19, 5, 7])

beforeAll(async () => {
  await save(IMAGE, image)
  await save(NAMED, [counting([2, 3, 1, 1], 'a'), counting([4], 'b'), counting([1], '#0')])
})

async function bytesOf(path: string, key: string | number = 0): Promise<Uint8Array> {
  const file = await open(path)
  try {
    return await file.dense(key).bytes()
  } finally {
    file.close()
  }
}

describe('convert', () => {
  it('casts and reorders, and returns what was written', async () => {
    const output = inFolder('blocked.npy')
    const result = await convert(IMAGE, output, { layout: 'b_fs_yx_fsv16', dtype: 'float16' })
    expect(result).toEqual({
      format: 'npy',
      byteLength: readFileSync(output).length,
      tensors: [
        {
          ...{ name: 'arr_0', kind: 'dense', dtype: 'float16', shape: [2, 19, 5, 7] },
          ...{ layout: 'b_fs_yx_fsv16', byteLength: 2 * 2 * 32 * 5 * 7, hasData: true },
        },
      ],
      findings: [],
      undo: [
        {
          output: inFolder('blocked.back.npy'),
          options: { fromLayout: 'b_fs_yx_fsv16', shape: [2, 19, 5, 7], tensors: [0] },
        },
      ],
      droppedNodes: 0,
      losses: [],
    })
    expect(JSON.parse(JSON.stringify(result))).toEqual(result)
  })

  it.each<ConvertOptions>([
    { layout: 'b_fs_yx_fsv16' },
    { layout: 'byxf', lower: [0, 3, 1, 1], upper: [0, 2, 2, 2] },
    { layout: 'os_is_yx_isa8_osv8_isv4' },
  ])('%j is undone by the conversions of its result', async (options) => {
    const output = inFolder('to_undo.btf')
    const { undo } = await convert(IMAGE, output, options)
    expect(undo).toHaveLength(1)
    for (const { output: back, options: backOptions } of undo) {
      await convert(output, back!, backOptions)
      expect(await bytesOf(back!)).toEqual(await bytesOf(IMAGE))
    }
  })

  it('undoes the source padding of a conversion between two padded layouts', async () => {
    const first = inFolder('padded.btf')
    await convert(IMAGE, first, { layout: 'b_fs_yx_fsv4', lower: [0, 1, 0, 0] })
    const second = inFolder('padded_again.btf')
    const { undo } = await convert(first, second, {
      ...{ fromLayout: 'b_fs_yx_fsv4', shape: [2, 19, 5, 7], fromLower: [0, 1, 0, 0] },
      ...{ layout: 'byxf', upper: [0, 0, 1, 0] },
    })
    expect(await bytesOf(second)).toEqual(await reorder(image, 'byxf', { upper: [0, 0, 1, 0] }).bytes())
    await convert(second, undo[0]!.output!, undo[0]!.options)
    expect(readFileSync(undo[0]!.output!)).toEqual(readFileSync(first))
  })

  it('selects by name and by index, below 0 from the end, in the given order', async () => {
    const output = inFolder('selected.safetensors')
    const { tensors } = await convert(NAMED, output, { tensors: [-1, 'a', 0, '#0'] })
    const file = await open(NAMED)
    const [first, last] = [file.tensors.at(0)!.name, file.tensors.at(-1)!.name]
    file.close()
    expect(tensors.map(({ name }) => name)).toEqual([...new Set([last, 'a', first, '#0'])])
  })

  it('quantizes with the options of quantize', async () => {
    const output = inFolder('codes.npy')
    await convert(IMAGE, output, { dtype: 'uint8', quantize: { scale: 0.5, zeroPoint: 3 } })
    const expected = await quantize(image, 'uint8', { scale: 0.5, zeroPoint: 3 }).bytes()
    expect(await bytesOf(output)).toEqual(expected)
  })

  it('passes the options of the writer on', async () => {
    const output = inFolder('with_metadata.safetensors')
    await convert(IMAGE, output, { metadata: { author: 'x' } })
    expect(readFileSync(output).includes('"author":"x"')).toBe(true)
  })

  it('writes a Fortran-ordered array for readers that know row-major order only, unless a layout is asked for', async () => {
    const fortran = inFolder('fortran.npy')
    await save(fortran, [reorder(image, 'column_major')])
    const output = inFolder('fortran.safetensors')
    await convert(fortran, output)
    expect(readFileSync(output).includes('tilework.layout')).toBe(false)
    expect(await bytesOf(output)).toEqual(await image.bytes())
    await convert(fortran, output, { layout: 'column_major' })
    expect(readFileSync(output).includes('tilework.layout')).toBe(true)
    const again = inFolder('again.safetensors')
    await convert(output, again)
    expect(readFileSync(again)).toEqual(readFileSync(output))
  })

  it('reads bytes and open files, and writes to streams', async () => {
    const chunks: Uint8Array[] = []
    const stream = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk.slice()) })
    const options = { layout: 'byxf', format: 'npy' } as const
    const { undo } = await convert(await serialize(image, { format: 'npy' }), stream, options)
    expect(undo).toEqual([{ options: { fromLayout: 'byxf', shape: [2, 19, 5, 7], tensors: [0] } }])
    const file = await open(IMAGE)
    const output = inFolder('from_open.npy')
    await convert(file, pathToFileURL(output), options)
    expect(Buffer.concat(chunks)).toEqual(readFileSync(output))
    expect(await file.dense(0).bytes()).toHaveLength(2 * 19 * 5 * 7 * 4)
    file.close()
  })

  it('applies the options under `open` to the input alone', async () => {
    const output = inFolder('never.npy')
    const limited = convert(NAMED, output, { tensors: [0], open: { limits: { tensors: 2 } } })
    await expect(limited).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    expect(existsSync(output)).toBe(false)
  })

  it('reports progress, and aborts without a result', async () => {
    const done: number[] = []
    const { byteLength } = await convert(IMAGE, inFolder('progress.btf'), {
      onProgress: ({ bytesDone }) => void done.push(bytesDone),
    })
    expect(done.at(-1)).toBe(byteLength)
    const output = inFolder('aborted.btf')
    const aborted = convert(IMAGE, output, { signal: AbortSignal.abort() })
    await expect(aborted).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect(existsSync(output)).toBe(false)
  })

  it('names every tensor that cannot be converted, with the code of the first', async () => {
    const mixed = inFolder('mixed.btf')
    await save(mixed, [await sparseFromDense(tensor(new Int32Array([0, 7]))), counting([2]), image])
    const failed = convert(mixed, inFolder('never.btf'), { layout: 'os_iyx_osv16' })
    await expect(failed).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringMatching(
        /^1 of 3 tensors cannot be converted: "0": A sparse tensor has no memory layout\. Select/,
      ),
    })
  })

  it('refuses changed tensors in place of a model', async () => {
    const model = inFolder('model.tmfile')
    await save(model, smallModel())
    const reordered = convert(model, inFolder('never.tmfile'), { layout: 'byxf' })
    await expect(reordered).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('which changed tensors no longer fit'),
    })
    const half = inFolder('half.tmfile')
    const { tensors } = await convert(model, half, { dtype: 'float16' })
    expect(tensors.find(({ name }) => name === 'conv/w')?.dtype).toBe('float16')
  })

  it.each<[ConvertOptions, string]>([
    [{ fromLayout: 'bfyx' }, 'fromLayout needs shape'],
    [{ shape: [1] }, 'shape, fromLower and fromUpper need fromLayout.'],
    [{ lower: [1] }, 'lower and upper need layout.'],
    [{ as: 'weights' }, 'as needs layout or fromLayout.'],
    [{ quantize: { scale: 1 } }, 'quantize needs dtype'],
    [{ tensors: ['a', 1.5] }, 'tensors is or has 1.5; it must be an array of names and indices.'],
    [{ layuot: 'bfyx' } as ConvertOptions, '"layuot"'],
  ])('refuses %j before it opens the input', async (options, message) => {
    const refused = convert('no such file', inFolder('never.btf'), options)
    await expect(refused).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message: expect.stringContaining(message),
    })
  })
})

describe('convertMany', () => {
  let cases = 0
  async function folderOf(names: readonly string[]): Promise<string> {
    const folder = inFolder(`many${cases++}`)
    mkdirSync(join(folder, 'in/deep'), { recursive: true })
    for (const name of names) await save(join(folder, 'in', name), image)
    return folder
  }

  it('converts patterns, paths and URLs, and skips finished files in a second run', async () => {
    const folder = await folderOf(['a.npy', 'b.npy', 'deep/c.npy'])
    const inputs = [join(folder, 'in/*.npy'), pathToFileURL(join(folder, 'in/deep/c.npy'))]
    const outcomes: FileOutcome[] = []
    const options = {
      outDir: join(folder, 'out'),
      layout: 'b_fs_yx_fsv4',
      onFile: (o: FileOutcome) => void outcomes.push(o),
    }
    const summary = await convertMany(inputs, options)
    const byteLength = 3 * readFileSync(join(folder, 'out/a.npy')).length
    expect(summary).toEqual({ files: 3, written: 3, skipped: 0, failed: 0, byteLength, failures: [] })
    expect(outcomes.map(({ status }) => status)).toEqual(['written', 'written', 'written'])
    const again = await convertMany(inputs, options)
    expect(again).toMatchObject({ written: 0, skipped: 3 })
    const [written, skipped] = [outcomes[0]!, outcomes[3]!]
    if (written.status !== 'written' || skipped.status !== 'skipped') throw new Error('other outcomes')
    expect(skipped.undo).toEqual(written.undo)
    expect(skipped.undo[0]!.output).toBe(join(folder, 'out/a.back.npy'))
    expect(await convertMany(inputs, { ...options, force: true })).toMatchObject({ written: 3 })
    expect(await convertMany(inputs, { ...options, layout: 'byxf' })).toMatchObject({ written: 3 })
  })

  it('takes { path } and lists of streams literally', async () => {
    const folder = await folderOf([])
    const odd = join(folder, 'in/[a].npy')
    await save(odd, image)
    const outDir = join(folder, 'out')
    expect(await convertMany({ path: odd }, { outDir })).toMatchObject({ written: 1 })
    const list = readPathList(Readable.from([Buffer.from(`${odd}\0`)]), { nul: true })
    expect(await convertMany(list, { outDir })).toMatchObject({ skipped: 1 })
    const none = convertMany({ path: join(folder, 'in/*.npy') }, { outDir })
    await expect(none).rejects.toMatchObject({ code: 'ERR_IO' })
  })

  it('throws the first failure, or counts failures with keepGoing', async () => {
    const folder = await folderOf(['a.npy', 'c.npy'])
    writeFileSync(join(folder, 'in/b.npy'), new Uint8Array([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]))
    const outcomes: FileOutcome[] = []
    const options = {
      outDir: join(folder, 'out'),
      onFile: (outcome: FileOutcome) => void outcomes.push(outcome),
    }
    const pattern = join(folder, 'in/*.npy')
    await expect(convertMany(pattern, options)).rejects.toMatchObject({ code: 'ERR_TRUNCATED' })
    expect(outcomes.map(({ status }) => status)).toEqual(['written', 'failed'])
    expect(outcomes[1]).toMatchObject({ input: join(folder, 'in/b.npy'), stage: 'open' })
    const first = join(folder, 'in/b.npy')
    expect(await convertMany(pattern, { ...options, keepGoing: true })).toMatchObject({
      ...{ files: 3, written: 1, skipped: 1, failed: 1 },
      failures: [{ code: 'ERR_TRUNCATED', count: 1, first }],
    })
    const layout = { ...options, keepGoing: true, dtype: 'int4' as const }
    await convertMany(pattern, layout)
    expect(outcomes.at(-1)).toMatchObject({ status: 'failed', stage: 'convert' })
  })

  it('reports progress in bytes of the inputs, up to all of them', async () => {
    const folder = await folderOf(['a.npy', 'b.npy'])
    const reports: ConvertManyProgress[] = []
    await convertMany(join(folder, 'in/*.npy'), {
      ...{ outDir: join(folder, 'out'), jobs: 0, manifest: false as const },
      onProgress: (progress) => void reports.push(progress),
    })
    expect(reports[0]).toMatchObject({ files: 2, written: 0, bytesDone: 0 })
    expect(reports.at(-1)).toMatchObject({ files: 2, written: 2, bytesDone: reports[0]!.bytesTotal })
    const done = reports.map(({ bytesDone }) => bytesDone)
    expect(done).toEqual(done.toSorted((one, other) => one - other))
    expect(readdirSync(join(folder, 'out'))).toEqual(['a.npy', 'b.npy'])
  })

  it('rejects with ERR_ABORTED and completes in a second run', async () => {
    const folder = await folderOf(['a.npy', 'b.npy', 'c.npy'])
    const controller = new AbortController()
    const options = { outDir: join(folder, 'out') }
    const aborted = convertMany(join(folder, 'in/*.npy'), {
      ...options,
      signal: controller.signal,
      onFile: () => controller.abort(),
    })
    await expect(aborted).rejects.toMatchObject({
      code: 'ERR_ABORTED',
      message: 'The conversion was cancelled when 1 of 3 files were done.',
    })
    expect(await convertMany(join(folder, 'in/*.npy'), options)).toMatchObject({ written: 2, skipped: 1 })
  })

  it('reports damaged lines of the manifest', async () => {
    const folder = await folderOf(['a.npy'])
    const manifest = join(folder, 'finished.jsonl')
    const options = { outDir: join(folder, 'out'), manifest }
    await convertMany(join(folder, 'in/*.npy'), options)
    writeFileSync(manifest, `${readFileSync(manifest, 'utf8')}damaged\n`)
    const damages: ManifestDamage[] = []
    const onDamagedManifest = (damage: ManifestDamage) => void damages.push(damage)
    await convertMany(join(folder, 'in/*.npy'), { ...options, onDamagedManifest })
    expect(damages).toEqual([{ path: manifest, lines: [3] }])
  })

  it.each<[object, string]>([
    [{ jobs: 257 }, 'jobs is 257; it must be a whole number from 0 (one for each CPU) to 256.'],
    [{ shard: { index: 3, count: 2 } }, 'shard must have 1 <= index <= count <= 1000000; it is 3 of 2.'],
    [{ outDir: 5 }, 'outDir is 5; it must be a path or a URL.'],
    [{ keepGoing: 1 }, 'keepGoing is 1; it must be true or false.'],
    [{ onFile: 1 }, 'onFile is 1; it must be a function.'],
  ])('refuses %j', async (options, message) => {
    const refused = convertMany('a.npy', { outDir: inFolder('never'), ...options } as never)
    await expect(refused).rejects.toMatchObject({ code: 'ERR_ARGUMENT', message })
    expect(existsSync(inFolder('never'))).toBe(false)
  })
})
