/** Inputs of a server or a browser: Blobs by slices, responses and streams up to a limit, and files that end themselves. */
import { openAsBlob, writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  check,
  convert,
  diff,
  type Input,
  open,
  save,
  serialize,
  type TileworkError,
  tensor,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const VALUES = Float32Array.from({ length: 20_000 }, (_, index) => index)
let bytes: Uint8Array<ArrayBuffer>

beforeAll(async () => {
  bytes = new Uint8Array(await serialize(tensor(VALUES), { format: 'npy' }))
})

function streamOf(chunkBytes: number, onCancel: () => void = () => undefined): ReadableStream<Uint8Array> {
  let start = 0
  return new ReadableStream({
    pull: (controller) => {
      if (start >= bytes.byteLength) return controller.close()
      controller.enqueue(bytes.subarray(start, start + chunkBytes))
      start += chunkBytes
    },
    cancel: onCancel,
  })
}

async function valuesOf(input: Input): Promise<unknown> {
  await using file = await open(input)
  expect(file.byteLength).toBe(bytes.byteLength)
  return await file.dense(0).toTypedArray()
}

describe('open', () => {
  it.each<[string, () => Input]>([
    ['a Blob', () => new Blob([bytes])],
    ['a File', () => new File([bytes], 'values.npy')],
    ['a Response', () => new Response(bytes)],
    [
      'a Response with a length',
      () => new Response(bytes, { headers: { 'content-length': `${bytes.byteLength}` } }),
    ],
    ['a ReadableStream', () => streamOf(100)],
    ['a stream of one chunk', () => streamOf(1e6)],
    [
      'a Readable of Node',
      () => Readable.from([Buffer.from(bytes.subarray(0, 7)), Buffer.from(bytes.subarray(7))]),
    ],
  ])('reads %s', async (_, input) => {
    expect(await valuesOf(input())).toEqual(VALUES)
    expect(await check(input())).toEqual([])
  })

  it('reads slices of a Blob, and only those that are asked for', async () => {
    const path = inFolder('values.npy')
    await save(path, tensor(VALUES))
    const blob = await openAsBlob(path)
    const read: number[] = []
    const counted = Object.assign(blob, {
      slice: (start: number, end: number) => {
        read.push(end - start)
        return Blob.prototype.slice.call(blob, start, end)
      },
    })
    const file = await open(counted)
    expect(read.reduce((sum, length) => sum + length, 0)).toBeLessThan(bytes.byteLength)
    expect(await file.dense(0).bytes({ start: 400, end: 404 })).toEqual(
      new Uint8Array(VALUES.slice(100, 101).buffer),
    )
    file.close()
    await expect(file.dense(0).bytes()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('names a File in messages by its name', async () => {
    const refused = open(new File([new Uint8Array(5)], 'upload.bin'))
    await expect(refused).rejects.toMatchObject({
      code: 'ERR_UNKNOWN_FORMAT',
      message: expect.stringContaining('upload.bin'),
    })
  })
})

describe('the limit of received bytes', () => {
  const limits = { inputBytes: 1000 }

  it('is checked against content-length before anything is read', async () => {
    let isCancelled = false
    const body = streamOf(100, () => {
      isCancelled = true
    })
    const refused = open(new Response(body, { headers: { 'content-length': '5000000000' } }), {
      limits: { inputBytes: 2 ** 20 },
    })
    await expect(refused).rejects.toMatchObject({
      code: 'ERR_LIMIT',
      message: expect.stringContaining('has 5000000000 bytes; limits.inputBytes allows 1048576.'),
    })
    expect(isCancelled).toBe(true)
  })

  it('ends a longer stream', async () => {
    let isCancelled = false
    const stream = streamOf(300, () => {
      isCancelled = true
    })
    await expect(open(stream, { limits })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
      message: expect.stringContaining('stream has more bytes; limits.inputBytes allows 1000.'),
    })
    expect(isCancelled).toBe(true)
    await expect(check(streamOf(300), { limits })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })

  it('allows exactly as many bytes, and is none for files and Blobs', async () => {
    const exact = { limits: { inputBytes: bytes.byteLength } }
    const received = await open(streamOf(64), exact)
    expect(received.byteLength).toBe(bytes.byteLength)
    expect((await open(new Blob([bytes]), { limits })).byteLength).toBe(bytes.byteLength)
  })
})

describe('an input that cannot be received', () => {
  it('is ERR_IO for a response with an error status', async () => {
    const response = new Response('Not Found', { status: 404, statusText: 'Not Found' })
    await expect(open(response)).rejects.toMatchObject({
      code: 'ERR_IO',
      message: 'response: the response has status 404 Not Found; it must be 2xx.',
    })
  })

  it('is ERR_IO with the cause for a stream that fails', async () => {
    const cause = new Error('connection reset')
    const failing = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(cause),
    })
    await expect(open(failing)).rejects.toMatchObject({ code: 'ERR_IO', cause })
  })

  it('is ERR_ARGUMENT for a body or stream in use, and for chunks that are not bytes', async () => {
    const used = new Response(bytes)
    await used.arrayBuffer()
    const locked = streamOf(10)
    locked.getReader()
    const text = new ReadableStream({ pull: (controller) => controller.enqueue('text') })
    for (const input of [used, locked, text]) {
      await expect(open(input)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })

  it('keeps credentials and queries of an address out of messages', async () => {
    const response = new Response(null, { status: 500 })
    Object.defineProperty(response, 'url', { value: 'https://user:secret@host.example/m.onnx?token=secret' })
    const message = await open(response).catch((error: Error) => error.message)
    expect(message).toBe('https://host.example/m.onnx: the response has status 500; it must be 2xx.')
  })
})

describe('an open file', () => {
  it('closes at the end of `await using`', async () => {
    const { file } = await (async () => {
      await using opened = await open(new Blob([bytes]))
      return { file: opened }
    })()
    await expect(file.dense(0).bytes()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('refuses to be cloned', async () => {
    const file = await open(bytes)
    expect(() => structuredClone(file)).toThrow('an open file; send its path or bytes instead')
  })
})

describe('an error of a file', () => {
  it('names the file in a property of its own, and bytes in memory not', async () => {
    const path = inFolder('cut.npy')
    const cut = Buffer.from('\x93NUMPY\x01\x00', 'latin1')
    writeFileSync(path, cut)
    for (const input of [path, pathToFileURL(path)]) {
      await expect(open(input)).rejects.toMatchObject({ code: 'ERR_TRUNCATED', file: path })
      await expect(convert(input, inFolder('out.btf'))).rejects.toMatchObject({ file: path })
      await expect(diff(input, input)).rejects.toMatchObject({ file: path })
    }
    const error = (await open(cut).catch((thrown: unknown) => thrown)) as TileworkError
    expect('file' in error).toBe(false)
    const good = inFolder('good.npy')
    await save(good, [tensor(Float32Array.of(1.5, 2))])
    const wrong = convert(good, inFolder('out.btf'), { tensors: ['none'] })
    await expect(wrong).rejects.toMatchObject({ code: expect.any(String), file: good })
  })
})
