/** What `save` and `convert` may replace: `overwrite: false`, and graphs that tensors alone would replace. */
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { convert, convertMany, open, type SaveOptions, save, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { addModel } from '../models/onnx/small_model.js'

const inFolder = temporaryFolder()
const values = tensor(Float32Array.of(1, 2), { name: 'w' })
let serial = 0
let path: string
beforeEach(() => {
  path = inFolder(`${serial++}.onnx`)
})

const nodesAt = async (path: string): Promise<number> => {
  using file = await open(path)
  return file.onnx?.graph.nodes.length ?? file.tmfile?.graph.nodes.length ?? 0
}

describe('a file with a graph', () => {
  it.each([
    ['onnx', async () => save(path, addModel()), 'holds an onnx model of 1 node,'],
    [
      'tmfile',
      async () => save(path, smallModel(), { format: 'tmfile' }),
      /holds a tmfile model of \d+ nodes?,/,
    ],
  ])('%s is not replaced by tensors', async (_, make, text) => {
    await make()
    const before = readFileSync(path)
    for (const options of [{}, { format: 'npz' }, { replaceGraph: false }] as SaveOptions[]) {
      await expect(save(path, [values], options)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', path })
    }
    await expect(save(path, [values])).rejects.toThrow(text)
    expect(readFileSync(path)).toEqual(before)
    await save(path, [values], { replaceGraph: true })
    expect(await nodesAt(path)).toBe(0)
  })

  it('is not replaced by its own weights, nor by those of another model', async () => {
    await save(path, addModel())
    const alone = { weightsOnly: true }
    await expect(convert(path, path, alone)).rejects.toThrow('replaceGraph')
    await expect(convert(path, path, { tensors: ['w'] })).rejects.toThrow('replaceGraph')
    expect(await nodesAt(path)).toBe(1)
    await convert(path, path, { ...alone, replaceGraph: true })
    expect(await nodesAt(path)).toBe(0)
  })

  it('is replaced by models, copies and empty models', async () => {
    for (const content of [addModel(), OnnxModel.create()]) {
      await save(path, addModel())
      await save(path, content)
      expect(await nodesAt(path)).toBe(content.graph.nodes.length)
    }
    const tensors = inFolder('tensors.onnx')
    await save(tensors, [values])
    await save(path, addModel())
    using file = await open(tensors)
    await save(path, file)
    expect(await nodesAt(path)).toBe(0)
  })

  it('does not protect files without nodes, other files, and files that cannot be read', async () => {
    await save(path, [values])
    await save(path, [values])
    for (const bytes of ['no tensor file', '']) {
      writeFileSync(path, bytes)
      await save(path, [values])
      expect(await nodesAt(path)).toBe(0)
    }
  })
})

describe('overwrite: false', () => {
  it('writes new files, and refuses those that exist before it computes', async () => {
    await save(path, addModel(), { overwrite: false })
    const before = readFileSync(path)
    let isRead = false
    const content = (function* () {
      isRead = true
      yield values
    })()
    const refusal = { code: 'ERR_IO', path, cause: { code: 'EEXIST' } }
    await expect(save(path, content, { overwrite: false })).rejects.toMatchObject(refusal)
    await expect(convert(path, path, { overwrite: false })).rejects.toMatchObject(refusal)
    expect(isRead).toBe(false)
    expect(readFileSync(path)).toEqual(before)
    await save(path, addModel(), { overwrite: true })
  })

  it('refuses a link that leads nowhere', async () => {
    symlinkSync(inFolder('nowhere.onnx'), path)
    await expect(save(path, [values], { overwrite: false })).rejects.toThrow('exists, and overwrite is false')
  })

  it('refuses a file that appears while the new one is written', async () => {
    const late = tensor(Float32Array.of(1), { name: 'late' })
    let isFirst = true
    const onProgress = (): void => {
      if (isFirst) writeFileSync(path, 'another process')
      isFirst = false
    }
    await expect(save(path, [late], { overwrite: false, onProgress })).rejects.toMatchObject({
      code: 'ERR_IO',
      cause: { code: 'EEXIST' },
    })
    expect(readFileSync(path, 'utf8')).toBe('another process')
  })

  it('refuses files beside the main one, and leaves none behind', async () => {
    const at = inFolder('shards/model.safetensors.index.json')
    mkdirSync(inFolder('shards'))
    const many = [values, tensor(Float32Array.of(3, 4), { name: 'v' })]
    const options = { maxShardBytes: 8 }
    await save(at, many, options)
    const names = readdirSync(inFolder('shards')).sort()
    const shard = names.find((name) => /-of-/.test(name))!
    for (const name of names) if (name !== shard) rmSync(inFolder(`shards/${name}`))
    const before = readFileSync(inFolder(`shards/${shard}`))
    await expect(save(at, many, { ...options, overwrite: false })).rejects.toThrow(shard)
    expect(readdirSync(inFolder('shards'))).toEqual([shard])
    expect(readFileSync(inFolder(`shards/${shard}`))).toEqual(before)
  })

  it('fails the files of a run whose outputs exist, unless an earlier run has written them', async () => {
    const outDir = inFolder('run')
    const inputs = [inFolder('a.npy'), inFolder('b.npy')]
    for (const input of inputs) await save(input, [values])
    await convertMany(inputs[0]!, { outDir })
    const statuses = async (): Promise<string[]> => {
      const found: string[] = []
      await convertMany(inputs, {
        outDir,
        overwrite: false,
        keepGoing: true,
        onFile: ({ status }) => found.push(status),
      })
      return found
    }
    expect(await statuses()).toEqual(['skipped', 'written'])
    writeFileSync(inFolder('run/b.npy'), 'changed by hand')
    expect(await statuses()).toEqual(['skipped', 'failed'])
    expect(readFileSync(inFolder('run/b.npy'), 'utf8')).toBe('changed by hand')
  })

  it('names a missing folder, and is refused for URLs and for other values than true and false', async () => {
    await expect(save(inFolder('none/x.npy'), [values], { overwrite: false })).rejects.toThrow(
      'does not exist',
    )
    await expect(save('s3://bucket/x.npy', [values], { overwrite: false })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    })
    for (const name of ['overwrite', 'replaceGraph']) {
      await expect(save(path, [values], { [name]: 0 })).rejects.toThrow(
        `${name} is 0; it must be true or false`,
      )
    }
  })
})
