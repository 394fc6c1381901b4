import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  asLayout,
  check,
  convert,
  type DenseTensor,
  materialize,
  open,
  parseLayout,
  reorder,
  save,
  serialize,
  tensor,
} from '../../lib/index.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { addModel } from '../models/onnx/small_model.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-save-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function ramp(shape: number[]): DenseTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return tensor(
    Float32Array.from({ length: count }, (_, i) => i + 0.5),
    { dtype: 'float32', shape },
  ) as DenseTensor
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

describe('a tensor goes to a blocked layout and back through files', () => {
  test.each(['map', 'read'] as const)('mode %s', async (mode) => {
    const plain = ramp([2, 19, 5, 7])
    const paths = ['plain', 'blocked', 'back'].map((name) => join(folder, `${name}.btf`))
    await save(paths[0]!, plain)
    const first = await open(paths[0]!, { mode })
    await save(paths[1]!, [reorder(first.tensors.at(0)!, 'b_fs_yx_fsv16')])
    first.close()
    const second = await open(paths[1]!, { mode })
    const stored = second.tensors.at(0) as DenseTensor
    expect(stored.shape).toEqual([2, 2, 5, 7, 16])
    await save(paths[2]!, [reorder(asLayout(stored, 'b_fs_yx_fsv16', [2, 19, 5, 7]), 'row_major')])
    second.close()
    expect(sha256(readFileSync(paths[2]!))).toBe(sha256(readFileSync(paths[0]!)))
    expect(readdirSync(folder)).toEqual(['back.btf', 'blocked.btf', 'plain.btf'])
  })
})

describe('save', () => {
  test('streams that are not writable are refused before anything is written', async () => {
    const sink = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() })
    const [destroyed, ended] = [sink().destroy(), sink().end()]
    const locked = new WritableStream<Uint8Array>()
    locked.getWriter()
    for (const stream of [destroyed, ended, locked]) {
      await expect(save(stream, ramp([2]))).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })

  test('an index never takes the name of a shard that it refers to', async () => {
    const shard = await serialize([ramp([2])], { format: 'safetensors' })
    writeFileSync(join(folder, 'b.index.json'), shard)
    writeFileSync(join(folder, 'a.index.json'), '{"weight_map":{"":"b.index.json"}}')
    const file = await open(join(folder, 'a.index.json'))
    for (const name of ['b.index.json', 'B.index.json']) {
      await expect(save(join(folder, name), file)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
    expect(readFileSync(join(folder, 'b.index.json')).equals(shard)).toBe(true)
    expect(readdirSync(folder).sort()).toEqual(['a.index.json', 'b.index.json'])
    file.close()
  })

  test('two models saved as one at the same time do not share shards', async () => {
    const path = join(folder, 'm.safetensors.index.json')
    const model = (value: number): DenseTensor[] =>
      ['a', 'b', 'c'].map((name) => tensor(new Uint8Array(1000).fill(value), { name }) as DenseTensor)
    const options = { maxShardBytes: 1000 }
    await Promise.all([1, 2, 3].map((value) => save(path, model(value), options)))
    // The shards of those that were replaced went with their index.
    expect(readdirSync(folder).length).toBe(4)
    const file = await open(path)
    const values = [...file.tensors].map((each) => (each as DenseTensor).at(999))
    expect(values).toEqual([values[0], values[0], values[0]])
    file.close()
  })

  test('an open file is written unchanged, byte for byte, gaps included', async () => {
    const bytes = await serialize([ramp([3, 3])])
    const withTail = new Uint8Array(bytes.byteLength + 5)
    withTail.set(bytes)
    withTail.set([1, 2, 3, 4, 5], bytes.byteLength)
    writeFileSync(join(folder, 'in.btf'), withTail)
    const file = await open(join(folder, 'in.btf'))
    await save(join(folder, 'out.btf'), file)
    expect(Buffer.compare(readFileSync(join(folder, 'out.btf')), withTail)).toBe(0)
    expect(Buffer.compare(await serialize(file), withTail)).toBe(0)
    file.close()
  })

  test('the output may be the source', async () => {
    const path = join(folder, 'same.btf')
    await save(path, ramp([1, 3, 4, 4]))
    const file = await open(path)
    const values = await (file.tensors.at(0) as DenseTensor).toTypedArray()
    await save(path, [reorder(file.tensors.at(0)!, 'byxf')])
    file.close()
    const again = await open(path)
    const restored = reorder(asLayout(again.tensors.at(0) as DenseTensor, 'byxf', [1, 3, 4, 4]), 'row_major')
    expect(await restored.toTypedArray()).toEqual(values)
    again.close()
  })

  test('a symbolic link stays, and its target is written', async () => {
    writeFileSync(join(folder, 'real.btf'), 'old')
    symlinkSync('real.btf', join(folder, 'link.btf'))
    await save(join(folder, 'link.btf'), ramp([2]))
    expect(await check(join(folder, 'real.btf'), { level: 'strict' })).toEqual([])
  })

  test('a refused tensor leaves the old file and no stray file', async () => {
    const path = join(folder, 'old.btf')
    writeFileSync(path, 'old')
    const half = tensor([1, 2], { dtype: 'float16' })
    await expect(save(path, half)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(folder)).toEqual(['old.btf'])
  })

  test('a source that fails in the middle leaves the old file and no stray file', async () => {
    await save(join(folder, 'in.btf'), ramp([64, 64]))
    writeFileSync(join(folder, 'old.btf'), 'old')
    const file = await open(join(folder, 'in.btf'), { mode: 'read' })
    truncateSync(join(folder, 'in.btf'), 1000)
    await expect(save(join(folder, 'old.btf'), [...file.tensors])).rejects.toMatchObject({
      code: 'ERR_FILE_CHANGED',
    })
    expect(readFileSync(join(folder, 'old.btf'), 'utf8')).toBe('old')
    expect(readdirSync(folder)).toEqual(['in.btf', 'old.btf'])
    file.close()
  })

  test('an abort before or during the save leaves nothing', async () => {
    const path = join(folder, 'out.btf')
    await expect(save(path, ramp([4]), { signal: AbortSignal.abort('why') })).rejects.toMatchObject({
      code: 'ERR_ABORTED',
      cause: 'why',
    })
    const controller = new AbortController()
    const onProgress = (): void => controller.abort()
    await expect(save(path, ramp([1000]), { signal: controller.signal, onProgress })).rejects.toMatchObject({
      code: 'ERR_ABORTED',
    })
    expect(readdirSync(folder)).toEqual([])
  })

  test('a named format wins over the extension', async () => {
    await save(join(folder, 'x.onnx'), ramp([1]), { format: 'btf' })
    using file = await open(join(folder, 'x.onnx'))
    expect(file.format).toBe('btf')
  })

  test('a tensor that returns too few bytes is refused and leaves nothing', async () => {
    const whole = ramp([4])
    const short = new Proxy(whole, {
      get: (target, key) =>
        key === 'bytes'
          ? async () => new Uint8Array(8)
          : key === 'constructor'
            ? Object
            : Reflect.get(target, key),
      getPrototypeOf: () => Object.prototype,
    })
    await expect(save(join(folder, 'short.btf'), short)).rejects.toMatchObject({ code: 'ERR_IO' })
    expect(readdirSync(folder)).toEqual([])
  })

  test('changes of returned values do not change the tensor', async () => {
    await save(join(folder, 'v.btf'), ramp([64, 64]))
    const file = await open(join(folder, 'v.btf'))
    const found = file.tensors.at(0) as DenseTensor
    const values = (await found.toTypedArray()) as Float32Array
    values.fill(-1)
    expect(found.at(0, 0)).toBe(0.5)
    file.close()
  })

  test('a folder that does not exist is ERR_IO with the path', async () => {
    const path = join(folder, 'none', 'out.btf')
    await expect(save(path, ramp([1]))).rejects.toMatchObject({ code: 'ERR_IO', path })
  })

  test('writes to a Node stream and to a web stream', async () => {
    const expected = await serialize(ramp([10, 10]))
    const chunks: Buffer[] = []
    const stream = new Writable({
      write: (chunk: Buffer, _, done) => {
        chunks.push(Buffer.from(chunk))
        done()
      },
    })
    await save(stream, ramp([10, 10]))
    expect(Buffer.compare(Buffer.concat(chunks), expected)).toBe(0)
    const parts: Uint8Array[] = []
    await save(
      new WritableStream({ write: (part: Uint8Array) => void parts.push(part.slice()) }),
      ramp([10, 10]),
    )
    expect(Buffer.compare(Buffer.concat(parts), expected)).toBe(0)
  })

  test('writes to a response of node:http', async () => {
    const server = createServer((_, response) => void save(response, ramp([10, 10]), { format: 'npy' }))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/`)
      const expected = await serialize(ramp([10, 10]), { format: 'npy' })
      expect(Buffer.compare(Buffer.from(await answer.arrayBuffer()), expected)).toBe(0)
    } finally {
      server.close()
    }
  })

  test('says how a typed array becomes a tensor', async () => {
    await expect(save(join(folder, 'a.npy'), new Float32Array(3) as never)).rejects.toThrow(
      'tensor(array, { shape }) makes a tensor of it.',
    )
  })

  test('says where names come from, for an object of tensors', async () => {
    const saved = save(join(folder, 'a.npz'), { x: ramp([2]) } as never)
    await expect(saved).rejects.toThrow('tensor(array, { name }): pass Object.values(…).')
  })

  test('progress ends at the total', async () => {
    const seen: number[] = []
    let last: unknown
    await save(join(folder, 'p.btf'), [ramp([5]), ramp([6])], {
      onProgress: (progress) => {
        seen.push(progress.bytesDone)
        last = progress
      },
    })
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    const bytesTotal = readFileSync(join(folder, 'p.btf')).byteLength
    expect(last).toMatchObject({ bytesDone: bytesTotal, bytesTotal, tensorsDone: 2, tensorsTotal: 2 })
    expect(last).toMatchObject({ secondsLeft: 0, bytesPerSecond: expect.any(Number) })
  })
})

describe('a model as a model of another format', () => {
  const lost = (own: string, target: string) => ({
    code: 'ERR_UNSUPPORTED',
    message: expect.stringMatching(
      `^The ${own} model has \\d+ nodes?, which ${target} cannot store: their graph would be lost. Save it as ${own}, its weights in .*safetensors`,
    ),
  })

  test('is refused: an ONNX model, its file, and its edited file', async () => {
    const path = join(folder, 'model.onnx')
    const target = join(folder, 'model.tmfile')
    await save(path, addModel())
    await expect(save(target, addModel())).rejects.toMatchObject(lost('onnx', 'tmfile'))
    await expect(serialize(addModel(), { format: 'tmfile' })).rejects.toMatchObject(lost('onnx', 'tmfile'))
    const file = await open(path)
    await expect(save(target, file)).rejects.toMatchObject(lost('onnx', 'tmfile'))
    file.onnx!.setMetadata('stage', 'edited')
    await expect(save(target, file)).rejects.toMatchObject(lost('onnx', 'tmfile'))
    expect(readdirSync(folder)).toEqual(['model.onnx'])
    await save(target, file.tensors)
    await save(join(folder, 'model.safetensors'), file)
    expect([...(await open(target)).tensors].map(({ name }) => name)).toEqual(['w'])
  })

  test('is refused for a tmfile as well; one without nodes is not', async () => {
    const model = smallModel()
    await expect(serialize(model, { format: 'onnx' })).rejects.toMatchObject(lost('tmfile', 'onnx'))
    const weights = await open(await serialize(ramp([2]), { format: 'tmfile' }))
    expect((await open(await serialize(weights, { format: 'onnx' }))).tensors.length).toBe(1)
  })
})

describe('reorder', () => {
  test('of a reorder joins the outer two and needs no middle', async () => {
    const plain = ramp([2, 5, 3, 4])
    const twice = reorder(reorder(plain, 'b_fs_yx_fsv16'), 'byxf')
    expect(await twice.bytes()).toEqual(await reorder(plain, 'byxf').bytes())
    expect(await reorder(twice, 'row_major').bytes()).toEqual(await plain.bytes())
  })

  test('any byte range of the result equals that slice of the whole', async () => {
    const lazy = reorder(ramp([2, 5, 3, 4]), 'b_fs_yx_fsv4', { lower: [0, 1, 0, 2], upper: [0, 0, 1, 0] })
    const whole = await lazy.bytes()
    expect(whole.byteLength).toBe(lazy.storage.byteLength)
    for (let start = 0; start < whole.byteLength; start += 97) {
      const end = Math.min(whole.byteLength, start + 131)
      expect(await lazy.bytes({ start, end })).toEqual(whole.slice(start, end))
      expect(lazy.bytesSync({ start, end })).toEqual(whole.slice(start, end))
    }
  })

  test('values, single elements and an owned copy of a blocked tensor are the logical ones', async () => {
    const plain = ramp([2, 5, 3, 4])
    const blocked = reorder(plain, 'bs_fs_yx_bsv16_fsv16')
    expect(await blocked.toTypedArray()).toEqual(await plain.toTypedArray())
    expect(blocked.at(1, 4, 2, 3)).toBe(plain.at(1, 4, 2, 3))
    const owned = await materialize(blocked)
    expect(owned.storage).toEqual(blocked.storage)
    expect(owned.at(1, 4, 2, 3)).toBe(plain.at(1, 4, 2, 3))
  })

  test('row_major with explicit padding keeps values and is stored with its padding', async () => {
    const plain = ramp([2, 3])
    const padded = reorder(plain, 'row_major', { lower: [1, 0], upper: [0, 2] })
    expect(padded.storage).toMatchObject({ layout: 'row_major', lower: [1, 0], upper: [0, 2], elements: 15 })
    const bytes = await padded.bytes()
    const stored = new Float32Array(bytes.buffer, bytes.byteOffset, 15)
    expect([...stored]).toEqual([0, 0, 0, 0, 0, 0.5, 1.5, 2.5, 0, 0, 3.5, 4.5, 5.5, 0, 0])
    const file = await open(await serialize(padded))
    const found = file.tensors.at(0) as DenseTensor
    expect(found.shape).toEqual([3, 5])
    const back = asLayout(found, 'row_major', [2, 3], { lower: [1, 0], upper: [0, 2] })
    expect(await back.toTypedArray()).toEqual(await plain.toTypedArray())
    expect(back.at(1, 2)).toBe(5.5)
  })

  test('a storage that a caller changed, or a shape with a hole, does not reach other plans', async () => {
    const shape = [1, 2, 3, 4]
    const expected = await reorder(ramp(shape), 'byxf').bytes()
    const storage = parseLayout('bfyx').storage(shape, { dtype: 'float32' })
    ;(storage.digits as unknown[]).reverse()
    ;(storage.side.pieces[0]!.digits as unknown[]).reverse()
    expect(await reorder(ramp(shape), 'byxf').bytes()).toEqual(expected)
    const holed = [1, 2, 3, 4]
    delete holed[1]
    expect(() => parseLayout('bfyx').storage(holed)).toThrowError(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })

  test('impossible reorders are refused at once', () => {
    expect(() => reorder(ramp([2, 3, 4, 5, 6]), 'bfyx')).toThrowError(
      expect.objectContaining({
        code: 'ERR_LAYOUT_SHAPE',
        message: expect.stringContaining('has 5 axes; bfyx takes at most 4'),
      }),
    )
    expect(() => reorder(reorder(ramp([2, 3, 4, 5]), 'bfyx'), 'oiyx')).not.toThrow()
    expect(() => reorder(materializedBlocked(), 'oiyx')).toThrowError(
      expect.objectContaining({ code: 'ERR_LAYOUT_JOIN' }),
    )
    expect(() => reorder(materializedBlocked(), 'oiyx', { as: 'weights' })).not.toThrow()
    const untyped = reorder as (...values: unknown[]) => unknown
    for (const values of [[], [undefined, 'bfyx'], [ramp([2])]]) {
      expect(() => untyped(...values)).toThrowError(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    }
    expect(() => reorder(ramp([2]), 'no_such_layout')).toThrowError(
      expect.objectContaining({ code: 'ERR_LAYOUT_NAME' }),
    )
  })
})

test('options that no writer has are refused, those of other writers are not', async () => {
  for (const options of [{ compact: true }, { formt: 'npy' }, null, []]) {
    const given = options as never
    await expect(serialize(ramp([2]), given)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    await expect(save(join(folder, 'x.btf'), ramp([2]), given)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  }
  expect(readdirSync(folder)).toEqual([])
  const others = { alignment: 64, mode: 'exact', zip64: 'auto', cooLayoutCode: 1 } as const
  expect(await serialize(ramp([2]), { format: 'npy', ...others })).toEqual(
    await serialize(ramp([2]), { format: 'npy' }),
  )
})

describe('an output that is longer than maxOutputBytes', () => {
  const content = [ramp([64])]
  const external = { format: 'onnx', external: { threshold: 0 } } as const
  const refused = {
    code: 'ERR_LIMIT',
    message: expect.stringMatching(/would have \d+ bytes; maxOutputBytes/),
  }

  test('is refused before anything is created, with the files beside it', async () => {
    const { byteLength } = await serialize(content, { format: 'npy' })
    const path = join(folder, 'a.npy')
    await expect(save(path, content, { maxOutputBytes: byteLength - 1 })).rejects.toMatchObject(refused)
    await expect(
      save(join(folder, 'm.onnx'), content, { ...external, maxOutputBytes: 200 }),
    ).rejects.toMatchObject(refused)
    expect(readdirSync(folder)).toEqual([])
    await save(path, content, { maxOutputBytes: byteLength })
    await save(join(folder, 'm.onnx'), content, { ...external, maxOutputBytes: 2000 })
    expect(readdirSync(folder)).toEqual(['a.npy', 'm.onnx', 'm.onnx.data'])
  })

  test('is refused for memory, streams and conversions', async () => {
    const limit = { format: 'btf', maxOutputBytes: 10 } as const
    await expect(serialize(content, limit)).rejects.toMatchObject(refused)
    const written: unknown[] = []
    const stream = new WritableStream<Uint8Array>({ write: (chunk) => void written.push(chunk) })
    await expect(save(stream, content, limit)).rejects.toMatchObject(refused)
    expect([written, stream.locked]).toEqual([[], false])
    const path = join(folder, 'a.npy')
    await save(path, content)
    for (const options of [{}, { format: 'btf' }, { dtype: 'float64' }] as const) {
      const conversion = convert(path, join(folder, 'b.npy'), { ...options, maxOutputBytes: 10 })
      await expect(conversion).rejects.toMatchObject(refused)
    }
    expect(readdirSync(folder)).toEqual(['a.npy'])
  })

  test('does not depend on how large it would be', async () => {
    const huge = reorder(ramp([8, 8]), 'bfyx', { upper: [1e6, 1e6, 0, 0] })
    const path = join(folder, 'a.npy')
    await expect(save(path, [huge], { maxOutputBytes: 1000 })).rejects.toMatchObject(refused)
  })

  test('names a wrong limit', async () => {
    for (const maxOutputBytes of [-1, Number.NaN, '1GiB'] as number[]) {
      const wrong = { code: 'ERR_ARGUMENT', message: expect.stringContaining('maxOutputBytes') }
      await expect(serialize(content, { maxOutputBytes })).rejects.toMatchObject(wrong)
      await expect(convert('none', 'none.npy', { maxOutputBytes })).rejects.toMatchObject(wrong)
    }
  })
})

function materializedBlocked(): DenseTensor {
  return asLayout(ramp([2, 1, 3, 3, 16]), 'b_fs_yx_fsv16', [2, 9, 3, 3])
}
